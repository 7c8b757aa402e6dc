package dynamodb

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxAttempts is the number of attempts of one call. Their delays add up to at most 750
// ms; the queue handles longer outages.
const maxAttempts = 5

// The codes of a CancellationReason that this package handles (API reference,
// TransactWriteItems).
const (
	conditionFailed = "ConditionalCheckFailed"
	conflict        = "TransactionConflict"
	throttled       = "ThrottlingError"
	overCapacity    = "ProvisionedThroughputExceeded"
)

// retryer returns the SDK's standard retryer (network errors, 5xx, throttling, and a
// token bucket against retry storms) with two differences. It also retries transaction
// conflicts. And it waits up to 50, 100, 200 and 400 ms instead of seconds, because a
// transaction holds an item for milliseconds only.
func retryer() *retry.Standard {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxAttempts
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(isTransient))
		jitter := retry.NewExponentialJitterBackoff(time.Minute) // up to 2, 4, 8, 16 s
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, err error) (time.Duration, error) {
			wait, err := jitter.BackoffDelay(attempt, err)
			return wait / 40, err
		})
	})
}

// isTransient reports whether err is a transaction conflict or a lack of capacity. A
// failed condition is not transient.
func isTransient(err error) aws.Ternary {
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return aws.TrueTernary
	}
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return aws.UnknownTernary
	}
	passes := false
	for _, reason := range canceled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case conditionFailed:
			return aws.FalseTernary
		case conflict, throttled, overCapacity:
			passes = true
		}
	}
	return aws.BoolTernary(passes)
}

// refusedBy returns the order item that failed a write's condition; empty if the item
// does not exist. An event item that already exists is not a refusal but a corrupt table,
// and stays an error.
func refusedBy(err error) (refusing row, refused bool) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return failed.Item, true
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok &&
		len(canceled.CancellationReasons) > 0 {
		first := canceled.CancellationReasons[0]
		return first.Item, aws.ToString(first.Code) == conditionFailed
	}
	return nil, false
}

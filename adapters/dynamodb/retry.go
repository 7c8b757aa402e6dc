package dynamodb

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxAttempts is how often one call is tried. Its waits add up to 750 ms at most: longer trouble is the queue's to wait out.
const maxAttempts = 5

// The codes of a CancellationReason that this package acts on (API reference, TransactWriteItems).
const (
	conditionFailed = "ConditionalCheckFailed"
	conflict        = "TransactionConflict"
	throttled       = "ThrottlingError"
	overCapacity    = "ProvisionedThroughputExceeded"
)

// retryer is the SDK's standard one: network errors, 5xx and throttling, and a token bucket against retry storms.
// Two things differ. It retries transaction conflicts, which the SDK does not. And it waits up to 50, 100, 200, 400 ms,
// not seconds: whoever holds an item in a transaction is done with it in milliseconds.
func retryer() *retry.Standard {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxAttempts
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(passing))
		jitter := retry.NewExponentialJitterBackoff(time.Minute) // up to 2, 4, 8, 16 s
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, err error) (time.Duration, error) {
			wait, err := jitter.BackoffDelay(attempt, err)
			return wait / 40, err
		})
	})
}

// passing reports whether err is about somebody else's transaction or about capacity. A condition that failed is a fact,
// and would fail again.
func passing(err error) aws.Ternary {
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

// refusedBy returns the order's row as it was when it failed a write's condition; an empty one if there is none.
// It is the order's row, not its event's: that an event exists already is no answer but a damaged table, and stays an error.
func refusedBy(err error) (refusing row, refused bool) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return failed.Item, true
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && len(canceled.CancellationReasons) > 0 {
		first := canceled.CancellationReasons[0]
		return first.Item, aws.ToString(first.Code) == conditionFailed
	}
	return nil, false
}

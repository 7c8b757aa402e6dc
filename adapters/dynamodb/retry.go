package dynamodb

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/internal/awsretry"
)

// The codes of a CancellationReason that this package handles (API reference,
// TransactWriteItems).
const (
	conditionFailed = "ConditionalCheckFailed"
	noReason        = "None" // this item did not cancel the transaction
	conflict        = "TransactionConflict"
	throttled       = "ThrottlingError"
	overCapacity    = "ProvisionedThroughputExceeded"
)

// The retries of one call: five attempts with delays of up to 50, 100, 200 and 400 ms.
// The delays are short because a transaction holds an item for milliseconds, and because
// the queue's redelivery is the retry that lasts.
//
// Failures that arrive at once, such as conflicts and throttled requests, cost at most
// 0.75 s of an order's budget, 10 s by default. Without responses, an attempt takes 2 s
// on an idle connection (config.AWSResponseTimeout) and 5 s on a new one
// (config.NewTransport), five at most 25.75 s. The call's context ends it earlier:
// ANSWER_TIME before the function's deadline.
const (
	maxAttempts = 5
	firstDelay  = 50 * time.Millisecond // at most; the bound doubles with each retry
)

func retryer() *retry.Standard {
	return awsretry.New(maxAttempts, firstDelay, retry.IsErrorRetryableFunc(isTransient))
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
	transient := false
	for _, reason := range canceled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case conditionFailed:
			return aws.FalseTernary
		case conflict, throttled, overCapacity:
			transient = true
		}
	}
	return aws.BoolTernary(transient)
}

// Refused returns the item that failed the condition of a write, of a transaction that of
// its first write; it is empty if the item does not exist. An event item that already
// exists is not a refusal but a corrupt table, and stays an error.
func Refused(err error) (refusing Item, refused bool) {
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

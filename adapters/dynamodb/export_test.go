package dynamodb

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
)

// The codec and the retry policy, for tests.

func DecodeEvent(item row) (order.Event, error) { return decodeEvent(item) }

func EncodeEvent(r order.Record, e order.Event) row { return encodeEvent(r, e) }

func Retryer() aws.RetryerV2 { return retryer() } //nolint:ireturn // the type that the client uses

// Write returns the condition and the update of a write.
func Write(before, after order.Record) (condition, update string) {
	x := difference(orders(), encodeOrder(before), encodeOrder(after))
	return x.condition(), x.update()
}

package dynamodb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
)

// The codec and the retry policy, for tests.

func DecodeOrder(item row) (order.Record, error) { return decodeOrder(item) }

func DecodeEvent(item row) (order.Event, error) { return decodeEvent(item) }

func EncodeEvent(r order.Record, e order.Event) row { return encodeEvent(r, e) }

// Hold reserves the goods of a claimed order, as Begin does with one that holds none.
func (s *Store) Hold(ctx context.Context, c order.Claim, goods order.Goods) (order.Claim, error) {
	return s.hold(ctx, c, goods)
}

func Retryer() aws.RetryerV2 { return retryer() } //nolint:ireturn // the type that the client uses

package dynamodb

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
)

// The codec and the retry policy, for tests.

func DecodeEvent(item Item) (order.Event, error) { return decodeEvent(item) }

func EncodeEvent(r order.Record, e order.Event) Item { return encodeEvent(&r, e) }

func Retryer() aws.RetryerV2 { return retryer() } //nolint:ireturn // the type that the client uses

// Write returns the condition and the update of a write.
func Write(before, after order.Record) (condition, update string) {
	g := orders().Guards
	x := difference(&g, encodeOrder(&before), encodeOrder(&after))
	return strings.Join(x.conditions, " AND "), x.update()
}

// ShardKeyOf returns the openShard that a release with so many shards writes.
func ShardKeyOf(first uint32, id order.ID, shards uint32) uint32 {
	return shardKey(first, ShardOf(id, shards))
}

// Package dynamodb stores orders in a DynamoDB table, and has what every store over a
// codec shares. Every write is one conditional call, so a refused write leaves nothing
// behind. Package order decides what a row means and which transitions are valid; this
// package compares, writes and reports. It does not read the clock, generate owners or
// log, and it knows nothing of refunds, receipts and registrations: each of them is a
// package below.
package dynamodb

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

var _ order.Store = (*Store)(nil)

// Store is a table of orders. It is safe for concurrent use. It stores times in
// milliseconds.
type Store struct {
	DB        *dynamodb.Client
	TableName string
	stock     string // the stock table; "": stock is not reserved
}

// New returns a Store for the named table. cfg provides region, credentials, endpoint and
// HTTP client; retries are this package's own. No call outlives its context.
func New(cfg aws.Config, table string) *Store {
	return &Store{DB: NewClient(cfg), TableName: table}
}

// NewClient returns the client that the stores of this package use, with its retries. A
// job with a table of its own uses it too.
func NewClient(cfg aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = retryer()
		o.RetryMaxAttempts = 0 // otherwise a number in cfg would overrule the retryer's
	})
}

// orders returns the codec of the order item. Its guard is what a transition rests on;
// the time of the last change is for readers, and the trace is that of the first claim
// that had one.
func orders() Codec[order.Record] {
	return Codec[order.Record]{
		Encode: encodeOrder, Decode: DecodeOrder,
		Guards: Guards{
			Guard: []string{"status", "seq", "owner", "intentId", "attempt", "leaseUntil", "stock", "parkedAt"},
			Quiet: []string{"updatedAt", "traceparent", "openShard"},
		},
	}
}

// Save implements order.Store with one UpdateItem, or with one TransactWriteItems if the
// change has an event or moves stock. A refusal returns the row that refused, so a
// duplicate costs one write and no read.
func (s *Store) Save(ctx context.Context, before, after order.Record) (order.Record, error) {
	more := s.EventsSince(before.Seq, &after)
	first := 1 + len(more)
	quantities, effect := order.StockChange(&before, &after)
	if len(quantities) > 0 && s.stock == "" {
		return order.Record{}, errNoStockTable
	}
	more = append(more, s.stockUpdates(quantities, effect)...)
	was, is := encodeOrder(&before), encodeOrder(&after)
	there, err := Save(ctx, s, orders(), OrderKey(after.OrderID), was, is, more...)
	if err != nil {
		err = stockError(err, quantities, effect, first)
	}
	if there != nil {
		return *there, err
	}
	after.Events = nil
	return after, err
}

// EventsSince returns the writes of the events of after since the one with this number.
func (s *Store) EventsSince(seq int, after *order.Record) (puts []types.TransactWriteItem) {
	for _, e := range after.Events {
		if e.Seq > seq {
			puts = append(puts, types.TransactWriteItem{Put: &types.Put{
				TableName: &s.TableName, Item: encodeEvent(after, e), ConditionExpression: aws.String(Absent),
			}})
		}
	}
	return puts
}

// Load implements order.Store with one strongly consistent Query. Events may be missing
// after their retention.
func (s *Store) Load(ctx context.Context, id order.ID) (order.Record, error) {
	var r order.Record
	for item, err := range s.Partition(ctx, id) {
		if err == nil {
			err = AddRow(&r, item)
		}
		if err != nil {
			return order.Record{}, order.About("load", id, err)
		}
	}
	if r.Status == "" {
		return r, order.About("load", id, order.ErrNotFound) // with the events that are left
	}
	return r, nil
}

// Partition reads every item of an order. It ends at the first error.
func (s *Store) Partition(ctx context.Context, id order.ID) iter.Seq2[Item, error] {
	return Query(ctx, s.DB, &dynamodb.QueryInput{
		TableName:                 &s.TableName,
		KeyConditionExpression:    aws.String("orderId = :id"),
		ExpressionAttributeValues: Item{":id": Text(id)},
		ConsistentRead:            aws.Bool(true), // decisions about money rest on it
	})
}

// Query reads every page of a query. It ends at the first error.
func Query(ctx context.Context, c *dynamodb.Client, in *dynamodb.QueryInput) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		pages := dynamodb.NewQueryPaginator(c, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Due implements settle.Waiting with one Query per shard and page of the index, each
// shard in the order of the due times. The index is eventually consistent.
//
// The shard that comes first depends on the time, so that a run which ends early leaves
// other orders than the one before.
func (s *Store) Due(ctx context.Context, at time.Time) iter.Seq2[order.ID, error] {
	return s.DueIn(ctx, OrderShards, Shards, at)
}

// DueIn returns what is due in so many shards of one kind, which begin at the key first:
// OrderShards or RegistrationShards.
func (s *Store) DueIn(ctx context.Context, first, shards uint32, at time.Time) iter.Seq2[order.ID, error] {
	return func(yield func(order.ID, error) bool) {
		begin := ShardOf(order.ID(strconv.FormatInt(at.UnixMilli(), 10)), shards)
		for n := range shards {
			shard := shardKey(first, (begin+n)%shards)
			for item, err := range Query(ctx, s.DB, &dynamodb.QueryInput{
				TableName: &s.TableName, IndexName: aws.String("open"), Limit: aws.Int32(100),
				KeyConditionExpression:    aws.String("openShard = :shard AND dueAt <= :at"),
				ExpressionAttributeValues: Item{":shard": Number(shard), ":at": Millis(at)},
			}) {
				if err != nil {
					yield("", fmt.Errorf("query due orders: %w", err))
					return
				}
				if !yield(order.ID(TextOf(item, "orderId")), nil) {
					return
				}
			}
		}
	}
}

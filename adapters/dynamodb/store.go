// Package dynamodb stores orders in a DynamoDB table, and has what every store over a
// codec shares. Every write is one conditional call, so a refused write leaves nothing
// behind. Package order decides what a row means and which transitions are valid; this
// package compares, writes and reports. It does not read the clock, generate owners or
// log, and it knows nothing of refunds, receipts and registrations: each of them is a
// package below.
//
// save.go has the one write over a codec, store.go the calls, row.go the items, stock.go
// the option that reserves stock, retry.go the retries and the meaning of failed calls.
package dynamodb

import (
	"context"
	"fmt"

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

// NewClient returns the client that the stores of this package use: with short delays
// between the retries, because the queue's redelivery is the retry that lasts. A job with
// a table of its own uses it too.
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
		Guard: []string{"status", "seq", "owner", "intentId", "attempt", "leaseUntil", "stock", "parkedAt"},
		Quiet: []string{"updatedAt", "traceparent", "openShard"},
	}
}

// Save implements order.Store with one UpdateItem, or with one TransactWriteItems if the
// change has an event or moves stock. A refusal returns the row that refused, so a
// duplicate costs one write and no read.
func (s *Store) Save(ctx context.Context, before, after order.Record) (order.Record, error) {
	more := s.EventsSince(before.Seq, after)
	first := 1 + len(more)
	quantities, effect := order.StockChange(before, after)
	if len(quantities) > 0 && s.stock == "" {
		return order.Record{}, errNoStockTable
	}
	more = append(more, s.stockUpdates(quantities, effect)...)
	now, err := Save(ctx, s, orders(), OrderKey(after.OrderID), before, after, more...)
	if err != nil {
		err = stockError(err, quantities, effect, first)
	}
	now.Events = nil
	return now, err
}

// EventsSince returns the writes of the events of after since the one with this number.
func (s *Store) EventsSince(seq int, after order.Record) (puts []types.TransactWriteItem) {
	for _, e := range after.Events {
		if e.Seq > seq {
			puts = append(puts, s.event(after, e))
		}
	}
	return puts
}

// event returns the write of an event item.
func (s *Store) event(r order.Record, e order.Event) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &s.TableName, Item: encodeEvent(r, e), ConditionExpression: aws.String(Absent),
	}}
}

// Load implements order.Store with one strongly consistent Query. Events may be missing
// after their retention.
func (s *Store) Load(ctx context.Context, id order.ID) (order.Record, error) {
	var r order.Record
	err := s.EachItem(ctx, id, func(item row) error { return AddRow(&r, item) })
	switch {
	case err != nil:
		return order.Record{}, Wrap("load", id, err)
	case r.Status == "":
		return r, Wrap("load", id, order.ErrNotFound) // with the events that are left
	}
	return r, nil
}

// EachItem reads the whole partition of an order. It ends at the first error.
func (s *Store) EachItem(ctx context.Context, id order.ID, add func(item row) error) error {
	pages := dynamodb.NewQueryPaginator(s.DB, &dynamodb.QueryInput{
		TableName:                 &s.TableName,
		KeyConditionExpression:    aws.String("orderId = :id"),
		ExpressionAttributeValues: row{":id": Text(id)},
		ConsistentRead:            aws.Bool(true), // decisions about money rest on it
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := add(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// Wrap adds the call and its order to an error.
func Wrap(verb string, id order.ID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s order %q: %w", verb, id, err)
}

// Package dynamodb stores orders and their refunds in a DynamoDB table, and receipts in
// another. Every write is
// one conditional call, so a refused write leaves nothing behind. Packages order and
// refund decide what a row means and which transitions are valid; this package compares,
// writes and reports. It does not read the clock, generate owners or log.
//
// store.go has the calls, row.go the items, stock.go the option that reserves goods,
// retry.go the retries and the meaning of failed calls.
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
	client *dynamodb.Client
	table  string
	stock  string // the stock table; "": goods are not reserved
}

// New returns a Store for the named table. cfg provides region, credentials, endpoint and
// HTTP client; retries are this package's own. No call outlives its context.
func New(cfg aws.Config, table string) *Store {
	return &Store{client: NewClient(cfg), table: table}
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

// orders is the codec of the order item. Its guard is what a transition rests on; the
// time of the last change is for readers, and the trace is that of the first claim that
// had one.
var orders = codec[order.Record]{
	encode: encodeOrder, decode: decodeOrder,
	guard: []string{"status", "seq", "owner", "intentId", "attempt", "leaseUntil", "stock", "parkedAt"},
	quiet: []string{"updatedAt", "traceparent", "openShard"},
}

// Save implements order.Store with one UpdateItem, or with one TransactWriteItems if the
// change has an event or moves stock. A refusal returns the row that refused, so a
// duplicate costs one write and no read.
func (s *Store) Save(ctx context.Context, before, after order.Record) (order.Record, error) {
	more := s.events(before.Seq, after)
	first := 1 + len(more)
	goods, effect := order.StockChange(before, after)
	if len(goods) > 0 && s.stock == "" {
		return order.Record{}, errNoStockTable
	}
	more = append(more, s.stockUpdates(goods, effect)...)
	now, err := save(ctx, s, orders, orderKey(after.OrderID), before, after, more...)
	if err != nil {
		err = stockError(err, goods, effect, first)
	}
	now.Events = nil
	return now, err
}

// events returns the events of after since the one with this number.
func (s *Store) events(seq int, after order.Record) (puts []types.TransactWriteItem) {
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
		TableName: &s.table, Item: encodeEvent(r, e), ConditionExpression: aws.String(absent),
	}}
}

// Load implements order.Store with one strongly consistent Query. Events may be missing
// after their retention.
func (s *Store) Load(ctx context.Context, id order.ID) (order.Record, error) {
	var r order.Record
	err := s.eachItem(ctx, id, func(item row) error { return addRow(&r, item) })
	switch {
	case err != nil:
		return order.Record{}, wrap("load", id, err)
	case r.Status == "":
		return r, wrap("load", id, order.ErrNotFound) // with the events that are left
	}
	return r, nil
}

// eachItem reads the whole partition of an order. It ends at the first error.
func (s *Store) eachItem(ctx context.Context, id order.ID, add func(item row) error) error {
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:                 &s.table,
		KeyConditionExpression:    aws.String("orderId = :id"),
		ExpressionAttributeValues: row{":id": text(id)},
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

func wrap(verb string, id order.ID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s order %q: %w", verb, id, err)
}

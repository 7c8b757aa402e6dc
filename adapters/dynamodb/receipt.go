package dynamodb

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

var (
	_ receipt.Store  = (*Receipts)(nil)
	_ receipt.Doubts = (*Receipts)(nil)
)

// Receipts is a table of receipts, with the partition key orderId and the sort key sk,
// which is the receipt's key. It is safe for concurrent use. It stores times in
// milliseconds. Items never expire, or an old event would send a second e-mail.
type Receipts struct {
	client *dynamodb.Client
	table  string
}

// NewReceipts returns the receipts in the named table, with the retries of New.
func NewReceipts(cfg aws.Config, table string) *Receipts {
	return &Receipts{client: NewClient(cfg), table: table}
}

// doubtful is the index of the doubtful receipts and its partition key, an attribute that
// only they have. Its sort key is updatedAt. Doubts are rare, so one partition is enough.
const doubtful = "doubtful"

// Load implements receipt.Store with one strongly consistent GetItem.
func (s *Receipts) Load(ctx context.Context, id order.ID, k receipt.Key) (receipt.Item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: row{"orderId": text(id), "sk": text(k)}, ConsistentRead: aws.Bool(true),
	})
	i := receipt.Item{OrderID: id, Key: k}
	if err == nil && len(out.Item) > 0 {
		i, err = decodeReceipt(out.Item)
	}
	return i, wrapReceipt("load", id, k, err)
}

// Save implements receipt.Store with one PutItem. A refusal returns the item that
// refused, so a repetition needs no read.
func (s *Receipts) Save(ctx context.Context, before, after receipt.Item) error {
	in := &dynamodb.PutItemInput{
		TableName: &s.table, Item: encodeReceipt(after), ConditionExpression: aws.String(absent),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if before.Revision > 0 {
		in.ConditionExpression = aws.String("revision = :revision")
		in.ExpressionAttributeValues = row{":revision": number(before.Revision)}
	}
	_, err := s.client.PutItem(ctx, in)
	if refusing, refused := Refused(err); refused {
		err = order.ErrStale
		if now, decodeErr := decodeReceipt(refusing); decodeErr == nil && sameReceipt(now, after) {
			err = nil
		}
	}
	return wrapReceipt("save", after.OrderID, after.Key, err)
}

// sameReceipt compares items as the table stores them.
func sameReceipt(stored, written receipt.Item) bool {
	again, err := decodeReceipt(encodeReceipt(written))
	return err == nil && stored == again
}

// Doubtful implements receipt.Doubts with one Query of the index per page, the oldest
// doubt first. The index is eventually consistent.
func (s *Receipts) Doubtful(ctx context.Context) iter.Seq2[receipt.Item, error] {
	return func(yield func(receipt.Item, error) bool) {
		err := s.query(ctx, &dynamodb.QueryInput{
			TableName: &s.table, IndexName: aws.String(doubtful),
			KeyConditionExpression:    aws.String("doubtful = :doubtful"),
			ExpressionAttributeValues: row{":doubtful": text(doubtful)},
		}, func(i receipt.Item) bool { return yield(i, nil) })
		if err != nil {
			yield(receipt.Item{}, fmt.Errorf("query doubtful receipts: %w", err))
		}
	}
}

// OfOrder implements receipt.Doubts with one strongly consistent Query.
func (s *Receipts) OfOrder(ctx context.Context, id order.ID) (all []receipt.Item, err error) {
	err = s.query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("orderId = :id"), ExpressionAttributeValues: row{":id": text(id)},
	}, func(i receipt.Item) bool {
		all = append(all, i)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("query receipts of order %q: %w", id, err)
	}
	return all, nil
}

// query calls found for each item, until it returns false.
func (s *Receipts) query(ctx context.Context, in *dynamodb.QueryInput, found func(receipt.Item) bool) error {
	pages := dynamodb.NewQueryPaginator(s.client, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			i, err := decodeReceipt(item)
			if err != nil {
				return err
			}
			if !found(i) {
				return nil
			}
		}
	}
	return nil
}

func encodeReceipt(i receipt.Item) row {
	item := row{
		"orderId": text(i.OrderID), "sk": text(i.Key), "status": text(i.Status), "attempt": number(i.Attempt),
		"revision": number(i.Revision), "createdAt": millis(i.CreatedAt), "updatedAt": millis(i.UpdatedAt),
	}
	addTexts(item, map[string]string{"owner": i.Owner, "messageId": string(i.Message), "failure": i.Failure})
	if !i.Until.IsZero() {
		item["leaseUntil"] = millis(i.Until)
	}
	if i.Status == receipt.Doubtful {
		item[doubtful] = text(doubtful)
	}
	return item
}

func decodeReceipt(item row) (receipt.Item, error) {
	d := decoder{item: item}
	status, err := receipt.ParseStatus(d.text("status"))
	i := receipt.Item{
		OrderID: order.ID(d.text("orderId")), Key: receipt.Key(d.text("sk")), Status: status,
		Owner: d.optionalText("owner"), Until: d.optionalTime("leaseUntil"), Attempt: int(d.number("attempt")),
		Message: receipt.MessageID(d.optionalText("messageId")), Failure: d.optionalText("failure"),
		Revision: int(d.number("revision")), CreatedAt: d.time("createdAt"), UpdatedAt: d.time("updatedAt"),
	}
	if err = cmp.Or(d.err, err); err == nil {
		err = i.Validate()
	}
	return i, err
}

func wrapReceipt(verb string, id order.ID, k receipt.Key, err error) error {
	return wrap(verb+" receipt "+string(k)+" of", id, err)
}

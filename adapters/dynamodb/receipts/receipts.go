// Package receipts keeps the receipts of orders in a table of their own.
package receipts

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

var _ receipt.Store = (*Store)(nil)

// Store is a table of receipts, with the partition key orderId and the sort key sk,
// which is the receipt's key. It is safe for concurrent use. It stores times in
// milliseconds. Items never expire, or an old event would send a second e-mail.
type Store struct {
	client *sdk.Client
	table  string
}

// New returns the receipts in the named table, with the retries of package dynamodb.
func New(cfg aws.Config, table string) *Store {
	return &Store{client: dynamodb.NewClient(cfg), table: table}
}

// doubtful is the index of the doubtful receipts and its partition key, an attribute that
// only they have. Its sort key is updatedAt. Doubts are rare, so one partition is enough.
const doubtful = "doubtful"

// Load implements receipt.Store with one strongly consistent GetItem.
func (s *Store) Load(ctx context.Context, id order.ID, k receipt.Key) (receipt.Item, error) {
	out, err := s.client.GetItem(ctx, &sdk.GetItemInput{
		TableName: &s.table, Key: dynamodb.Item{"orderId": dynamodb.Text(id), "sk": dynamodb.Text(k)},
		ConsistentRead: aws.Bool(true),
	})
	i := receipt.Item{OrderID: id, Key: k}
	if err == nil && len(out.Item) > 0 {
		i, err = decodeReceipt(out.Item)
	}
	return i, wrapReceipt("load", id, k, err)
}

// Save implements receipt.Store with one PutItem. A refusal returns the item that
// refused, so a repetition needs no read.
func (s *Store) Save(ctx context.Context, before, after receipt.Item) (receipt.Item, error) {
	in := &sdk.PutItemInput{
		TableName: &s.table, Item: encodeReceipt(after), ConditionExpression: aws.String(dynamodb.Absent),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if before.Revision > 0 {
		in.ConditionExpression = aws.String("revision = :revision")
		in.ExpressionAttributeValues = dynamodb.Item{":revision": dynamodb.Number(before.Revision)}
	}
	now := after
	_, err := s.client.PutItem(ctx, in)
	if refusing, refused := dynamodb.Refused(err); refused {
		now, err = receipt.Item{OrderID: after.OrderID, Key: after.Key}, nil
		if len(refusing) > 0 {
			now, err = decodeReceipt(refusing)
		}
		// What was written is compared as the table stores it.
		if again, _ := decodeReceipt(encodeReceipt(after)); err == nil && now != again {
			err = order.ErrStale
		}
	}
	return now, wrapReceipt("save", after.OrderID, after.Key, err)
}

// Doubtful lists the doubtful receipts, and those that are Wanted, with one Query of the
// index per page, the oldest first. The index is eventually consistent. The list ends at
// the first error.
func (s *Store) Doubtful(ctx context.Context) iter.Seq2[receipt.Item, error] {
	return s.query(ctx, "query doubtful receipts", &sdk.QueryInput{
		TableName: &s.table, IndexName: aws.String(doubtful),
		KeyConditionExpression:    aws.String("doubtful = :doubtful"),
		ExpressionAttributeValues: dynamodb.Item{":doubtful": dynamodb.Text(doubtful)},
	})
}

// OfOrder returns the receipts of an order, with one strongly consistent Query.
func (s *Store) OfOrder(ctx context.Context, id order.ID) (all []receipt.Item, err error) {
	for i, err := range s.query(ctx, fmt.Sprintf("query receipts of order %q", id), &sdk.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("orderId = :id"),
		ExpressionAttributeValues: dynamodb.Item{":id": dynamodb.Text(id)},
	}) {
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

func (s *Store) query(ctx context.Context, what string, in *sdk.QueryInput) iter.Seq2[receipt.Item, error] {
	return func(yield func(receipt.Item, error) bool) {
		for item, err := range dynamodb.Query(ctx, s.client, in) {
			var i receipt.Item
			if err == nil {
				i, err = decodeReceipt(item)
			}
			if err != nil {
				yield(receipt.Item{}, fmt.Errorf("%s: %w", what, err))
				return
			}
			if !yield(i, nil) {
				return
			}
		}
	}
}

func receiptFields(f *dynamodb.Fields, i *receipt.Item) {
	f.Require("orderId", "sk", "status", "attempt", "revision", "createdAt", "updatedAt")
	dynamodb.TextField(f, "orderId", &i.OrderID)
	dynamodb.TextField(f, "sk", &i.Key)
	dynamodb.TextField(f, "status", &i.Status)
	dynamodb.TextField(f, "owner", &i.Owner)
	dynamodb.TimeField(f, "leaseUntil", &i.Until)
	dynamodb.NumberField(f, "attempt", &i.Attempt)
	dynamodb.TextField(f, "messageId", &i.Message)
	dynamodb.TextField(f, "failure", &i.Failure)
	dynamodb.NumberField(f, "revision", &i.Revision)
	dynamodb.TimeField(f, "createdAt", &i.CreatedAt)
	dynamodb.TimeField(f, "updatedAt", &i.UpdatedAt)
}

func encodeReceipt(i receipt.Item) dynamodb.Item {
	f := dynamodb.Fields{Item: dynamodb.Item{}, Encodes: true}
	if receiptFields(&f, &i); i.Status == receipt.Doubtful || i.Wanted() {
		f.Item[doubtful] = dynamodb.Text(doubtful)
	}
	return f.Item
}

func decodeReceipt(item dynamodb.Item) (i receipt.Item, err error) {
	f := dynamodb.Fields{Item: item}
	receiptFields(&f, &i)
	if _, err = receipt.ParseStatus(string(i.Status)); cmp.Or(f.Err, err) == nil {
		err = i.Validate()
	}
	return i, cmp.Or(f.Err, err)
}

func wrapReceipt(verb string, id order.ID, k receipt.Key, err error) error {
	return order.About(verb+" receipt "+string(k)+" of", id, err)
}

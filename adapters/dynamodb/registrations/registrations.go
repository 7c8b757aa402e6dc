// Package registrations keeps the registrations of orders that clients put, beside the
// orders.
package registrations

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/intake"
	"orderonce/domain/order"
)

var _ intake.Book = (*Store)(nil)

// registrationRow is the sort key of an order that a client put. It never expires, or
// another content could be charged later.
const registrationRow = "intake"

// Store keeps the registrations of orders that clients put, each as an item of
// its order's partition, so that one Query reads both.
type Store struct{ Orders *dynamodb.Store }

// Register implements intake.Book with one PutItem. A refusal returns the registration
// that is there: another's, or our own if the response to our first attempt was lost.
func (s *Store) Register(ctx context.Context, r intake.Registration) (intake.Registration, error) {
	_, err := s.Orders.DB.PutItem(ctx, &sdk.PutItemInput{
		TableName: &s.Orders.TableName, Item: encodeRegistration(r),
		ConditionExpression:                 aws.String(dynamodb.Absent),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	stored := r
	if item, refused := dynamodb.Refused(err); refused {
		stored, err = decodeRegistration(item)
	}
	return stored, order.About("register", r.OrderID, err)
}

// MarkSent implements intake.Book with one UpdateItem.
func (s *Store) MarkSent(ctx context.Context, id order.ID) error {
	_, err := s.Orders.DB.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: &s.Orders.TableName, Key: dynamodb.Item{
			"orderId": dynamodb.Text(id),
			"sk":      dynamodb.Text(registrationRow),
		},
		UpdateExpression:    aws.String("REMOVE openShard, dueAt"),
		ConditionExpression: aws.String("attribute_exists(orderId)"),
	})
	if _, refused := dynamodb.Refused(err); refused {
		err = order.ErrNotFound
	}
	return order.About("mark as sent", id, err)
}

// unsentAfter is the age at which a registration that was not marked as sent is listed:
// its client no longer repeats the request.
const unsentAfter = 10 * time.Minute

// Unsent returns the orders that were put ten minutes before a time, may not have been
// sent and were not claimed. It reads the index, which is eventually consistent, and then
// each order.
func (s *Store) Unsent(ctx context.Context, at time.Time) iter.Seq2[intake.Registration, error] {
	return func(yield func(intake.Registration, error) bool) {
		for id, err := range s.Orders.DueIn(ctx, dynamodb.RegistrationShards, dynamodb.Shards, at) {
			if err != nil {
				yield(intake.Registration{}, err)
				return
			}
			e, err := s.Find(ctx, id)
			r := e.Registration
			if err != nil {
				r = intake.Registration{OrderID: id}
			}
			if waits := err != nil || !r.Sent && e.Record.OrderID == ""; waits && !yield(r, err) {
				return
			}
		}
	}
}

// Find implements intake.Book with one strongly consistent Query.
func (s *Store) Find(ctx context.Context, id order.ID) (e intake.Entry, err error) {
	for item, err := range s.Orders.Partition(ctx, id) {
		if err == nil && dynamodb.TextOf(item, "sk") == registrationRow {
			e.Registration, err = decodeRegistration(item)
		} else if err == nil {
			err = dynamodb.AddRow(&e.Record, item)
		}
		if err != nil {
			return e, order.About("find", id, err)
		}
	}
	if e.Record.OrderID == "" {
		e.Record = order.Record{} // events whose order item is missing
	}
	return e, nil
}

func registrationFields(f *dynamodb.Fields, r *intake.Registration) {
	f.Require("orderId", "fingerprint", "amount", "currency", "caller", "createdAt")
	dynamodb.TextField(f, "orderId", &r.OrderID)
	dynamodb.TextField(f, "fingerprint", &r.Fingerprint)
	dynamodb.NumberField(f, "amount", &r.Total.Amount)
	dynamodb.TextField(f, "currency", &r.Total.Currency)
	dynamodb.TextField(f, "caller", &r.Caller)
	dynamodb.TimeField(f, "createdAt", &r.At)
}

func encodeRegistration(r intake.Registration) dynamodb.Item {
	f := dynamodb.Fields{Encodes: true, Item: dynamodb.Item{
		"sk": dynamodb.Text(registrationRow),
		// In the index until MarkSent, in other shards than those of the orders that wait.
		"openShard": dynamodb.ShardKey(dynamodb.RegistrationShards, r.OrderID),
		"dueAt":     dynamodb.Millis(r.At.Add(unsentAfter)),
	}}
	registrationFields(&f, &r)
	return f.Item
}

func decodeRegistration(item dynamodb.Item) (r intake.Registration, err error) {
	f := dynamodb.Fields{Item: item}
	r.Sent = f.Time("dueAt").IsZero() // as every registration of an older release
	if registrationFields(&f, &r); f.Err != nil {
		return intake.Registration{}, fmt.Errorf("row %q: %w", registrationRow, f.Err)
	}
	return r, nil
}

package dynamodb

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/intake"
	"orderonce/domain/order"
)

var _ intake.Book = (*Registrations)(nil)

// Registrations keeps the registrations of orders that clients put, each as an item of
// its order's partition, so that one Query reads both.
type Registrations struct{ *Store }

// Register implements intake.Book with one PutItem. A refusal returns the registration
// that is there: another's, or our own if the response to our first attempt was lost.
func (s *Registrations) Register(ctx context.Context, r intake.Registration) (intake.Registration, error) {
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.table, Item: encodeRegistration(r), ConditionExpression: aws.String(absent),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	stored := r
	if item, refused := Refused(err); refused {
		stored, err = decodeRegistration(item)
	}
	return stored, wrap("register", r.OrderID, err)
}

// MarkSent implements intake.Book with one UpdateItem.
func (s *Registrations) MarkSent(ctx context.Context, id order.ID) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: row{"orderId": text(id), "sk": text(registrationRow)},
		UpdateExpression:    aws.String("REMOVE openShard, dueAt"),
		ConditionExpression: aws.String("attribute_exists(orderId)"),
	})
	if _, refused := Refused(err); refused {
		err = order.ErrNotFound
	}
	return wrap("mark as sent", id, err)
}

// unsentAfter is the age at which a registration that was not marked as sent is listed:
// its client no longer repeats the request.
const unsentAfter = 10 * time.Minute

// Unsent returns the orders that were put ten minutes before a time, may not have been
// sent and were not claimed. It reads the index, which is eventually consistent, and then
// each order.
func (s *Registrations) Unsent(ctx context.Context, at time.Time) iter.Seq2[intake.Registration, error] {
	return func(yield func(intake.Registration, error) bool) {
		for id, err := range s.dueIn(ctx, shards, at) {
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
func (s *Registrations) Find(ctx context.Context, id order.ID) (intake.Entry, error) {
	var e intake.Entry
	err := s.eachItem(ctx, id, func(item row) (err error) {
		if sortKey(item) == registrationRow {
			e.Registration, err = decodeRegistration(item)
			return err
		}
		return addRow(&e.Record, item)
	})
	if err == nil && e.Record.OrderID == "" {
		e.Record = order.Record{} // events whose order item is missing
	}
	return e, wrap("find", id, err)
}

func encodeRegistration(r intake.Registration) row {
	return row{
		"orderId": text(r.OrderID), "sk": text(registrationRow), "fingerprint": text(r.Fingerprint),
		"amount": number(r.Total.Amount), "currency": text(r.Total.Currency),
		"caller": text(r.Caller), "createdAt": millis(r.At),
		// In the index until MarkSent, beside the shards of the orders that wait.
		"openShard": number(shards + shardOf(r.OrderID)), "dueAt": millis(r.At.Add(unsentAfter)),
	}
}

func decodeRegistration(item row) (intake.Registration, error) {
	d := decoder{item: item}
	r := intake.Registration{
		OrderID: order.ID(d.text("orderId")), Fingerprint: order.Fingerprint(d.text("fingerprint")),
		Total:  order.Money{Amount: d.number("amount"), Currency: order.Currency(d.text("currency"))},
		Caller: intake.Caller(d.text("caller")), At: d.time("createdAt"),
		Sent: d.optionalTime("dueAt").IsZero(), // as every registration of an older release
	}
	if d.err != nil {
		return intake.Registration{}, fmt.Errorf("row %q: %w", registrationRow, d.err)
	}
	return r, nil
}

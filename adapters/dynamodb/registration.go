package dynamodb

import (
	"context"
	"fmt"

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
	}
}

func decodeRegistration(item row) (intake.Registration, error) {
	d := decoder{item: item}
	r := intake.Registration{
		OrderID: order.ID(d.text("orderId")), Fingerprint: order.Fingerprint(d.text("fingerprint")),
		Total:  order.Money{Amount: d.number("amount"), Currency: order.Currency(d.text("currency"))},
		Caller: intake.Caller(d.text("caller")), At: d.time("createdAt"),
	}
	if d.err != nil {
		return intake.Registration{}, fmt.Errorf("row %q: %w", registrationRow, d.err)
	}
	return r, nil
}

// Package shop is a Lambda function that charges the orders of an SQS queue and keeps
// them in a table. docs/guides/existing.md compares its two versions, before and after.
package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/paymentintent"

	ordertable "orderonce/adapters/dynamodb"
	orderstripe "orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/domain/order"
)

// Handler charges orders and keeps them in Table, whose partition key is orderId.
type Handler struct {
	Table  string
	Client *dynamodb.Client
	Stripe paymentintent.Client

	Charges  order.Processor // of NewCharges
	NewOwner func() string   // returns a random token
	Cutover  time.Time       // orders created before it are charged the old way
}

// NewCharges returns what charges. table is a new one, and now is time.Now.
func NewCharges(cfg aws.Config, table string, o orderstripe.Options, now func() time.Time) order.Processor {
	return order.Processor{
		Store: ordertable.New(cfg, table), Payments: charge.New(o), Scope: o.Scope, Now: now,
		ConfirmTime: 20 * time.Second, // one call to Stripe and two to the table
	}
}

// Order is the message.
type Order struct {
	ID        string    `json:"orderId"`
	CreatedAt time.Time `json:"createdAt"`
	Customer  string    `json:"customer"` // at Stripe
	Card      string    `json:"paymentMethod"`
	Amount    int64     `json:"amount"` // in minor units
	Currency  string    `json:"currency"`
}

// Handle charges the orders of a batch. After an error the whole batch comes back.
func (h *Handler) Handle(ctx context.Context, batch events.SQSEvent) error {
	for _, message := range batch.Records {
		var o Order
		if err := json.Unmarshal([]byte(message.Body), &o); err != nil {
			return fmt.Errorf("decode order: %w", err)
		}
		status, err := h.chargeOnce(ctx, o)
		if err == nil {
			err = h.save(ctx, o, status)
		}
		if err != nil {
			return fmt.Errorf("order %s: %w", o.ID, err)
		}
	}
	return nil
}

func (h *Handler) charge(ctx context.Context, o Order) (status string, err error) {
	params := &stripe.PaymentIntentParams{
		Amount: &o.Amount, Currency: &o.Currency, Customer: &o.Customer, PaymentMethod: &o.Card,
		Confirm: new(true), OffSession: new(true), Metadata: map[string]string{"orderId": o.ID},
	}
	params.Context = ctx
	params.SetIdempotencyKey(o.ID)
	intent, err := h.Stripe.New(params)
	if failure, ok := errors.AsType[*stripe.Error](err); ok && failure.Type == stripe.ErrorTypeCard {
		return "FAILED", nil
	}
	if err != nil {
		return "", err
	}
	if intent.Status != stripe.PaymentIntentStatusSucceeded {
		return "PENDING", nil
	}
	return "PAID", nil
}

// leaseTime is more than an attempt takes, and at most the visibility time-out.
const leaseTime = time.Minute

// chargeOnce claims the order, prepares and binds its one intent, confirms that intent
// and records the outcome, or finds that another attempt did.
func (h *Handler) chargeOnce(ctx context.Context, o Order) (status string, err error) {
	if o.CreatedAt.Before(h.Cutover) {
		return h.charge(ctx, o)
	}
	valid, err := order.New(order.Draft{
		ID: o.ID, CustomerID: o.Customer, Currency: o.Currency,
		Lines:   []order.Line{{SKU: "order", Quantity: 1, UnitAmount: o.Amount}},
		Payment: order.Payment{Customer: o.Customer, Method: o.Card},
	})
	if err != nil {
		return "", err
	}
	now := h.Charges.Now()
	lease := order.Lease{Owner: h.NewOwner(), From: now, Until: now.Add(leaseTime)}
	result := h.Charges.Process(ctx, valid, o.CreatedAt, lease)
	switch s := result.Status; {
	case result.Verdict != order.Done:
		return "", fmt.Errorf("%s: %w", result.Reason, result.Err)
	case s == order.Paid:
		return "PAID", nil
	case s == order.Pending:
		return "PENDING", nil
	case s == order.Declined, s == order.ActionRequired, s == order.Canceled:
		return "FAILED", nil
	default:
		return "", fmt.Errorf("charged, and now %s", s)
	}
}

func (h *Handler) save(ctx context.Context, o Order, status string) error {
	_, err := h.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &h.Table,
		Item: map[string]types.AttributeValue{
			"orderId": &types.AttributeValueMemberS{Value: o.ID},
			"status":  &types.AttributeValueMemberS{Value: status},
			"amount":  &types.AttributeValueMemberN{Value: strconv.FormatInt(o.Amount, 10)},
		},
		ConditionExpression: new("attribute_not_exists(orderId)"),
	})
	if _, refused := ordertable.Refused(err); refused {
		return nil // an earlier delivery saved it, and it may have changed since
	}
	return err
}

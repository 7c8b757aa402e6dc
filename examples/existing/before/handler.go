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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/paymentintent"
)

// Handler charges orders and keeps them in Table, whose partition key is orderId.
type Handler struct {
	Table  string
	Client *dynamodb.Client
	Stripe paymentintent.Client
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
		status, err := h.charge(ctx, o)
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

func (h *Handler) save(ctx context.Context, o Order, status string) error {
	_, err := h.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &h.Table,
		Item: map[string]types.AttributeValue{
			"orderId": &types.AttributeValueMemberS{Value: o.ID},
			"status":  &types.AttributeValueMemberS{Value: status},
			"amount":  &types.AttributeValueMemberN{Value: strconv.FormatInt(o.Amount, 10)},
		},
	})
	return err
}

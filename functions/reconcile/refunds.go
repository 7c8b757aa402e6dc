package main

import (
	"context"
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// newRefunds returns what looks at the refunds of a charged order.
func newRefunds(
	scope order.Scope, store *dynamodb.Store, o stripe.Options,
) func(context.Context, order.ID) error {
	refresher := refund.Refresher{
		Records: &dynamodb.Refunds{Store: store}, Provider: stripe.NewRefunds(o), Scope: scope, Now: time.Now,
	}
	return func(ctx context.Context, id order.ID) error {
		_, err := refresher.Refresh(ctx, id)
		return err
	}
}

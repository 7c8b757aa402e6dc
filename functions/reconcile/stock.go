package main

import (
	"context"
	"time"

	"orderonce/domain/order"
)

// payments is Stripe as an order that may be canceled needs it.
type payments interface {
	order.Payments
	order.Canceler
}

// newCancelDeclined returns what cancels an order that holds stock and has waited for its
// customer for STOCK_HOLD; nil without a stock table.
func newCancelDeclined(
	c environment, store order.Store, p payments, now func() time.Time,
) func(context.Context, order.Record) (order.Record, error) {
	if c.Stock == "" {
		return nil
	}
	cancellation := order.Cancellation{Store: store, Payments: p, Canceler: p, Scope: c.Scope.Order()}
	return func(ctx context.Context, r order.Record) (order.Record, error) {
		ctx, cancel := context.WithTimeout(ctx, c.freeTime())
		defer cancel()
		return cancellation.CancelDeclined(ctx, r, c.Hold, now())
	}
}

package main

import (
	"context"
	"time"

	"orderonce/domain/order"
)

// newCancelDeclined returns what cancels an order that holds stock and has waited for its
// customer for STOCK_HOLD; nil without a stock table.
func newCancelDeclined(
	c environment, cancellation order.Cancellation, now func() time.Time,
) func(context.Context, order.Record) (order.Record, error) {
	if c.Stock == "" {
		return nil
	}
	return func(ctx context.Context, r order.Record) (order.Record, error) {
		ctx, cancel := context.WithTimeout(ctx, c.freeTime())
		defer cancel()
		return cancellation.CancelDeclined(ctx, r, c.Hold, now())
	}
}

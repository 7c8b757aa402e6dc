package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"orderonce/adapters/config"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/functions/internal/functiontest"
	"orderonce/functions/internal/provider"
)

// deadlines is a store whose Load notes the time that is left.
type deadlines struct {
	order.Store

	left time.Duration
}

func (d *deadlines) Load(ctx context.Context, _ order.ID) (order.Record, error) {
	at, _ := ctx.Deadline()
	d.left = time.Until(at)
	return order.Record{}, context.DeadlineExceeded
}

// A recheck makes its own calls before it frees stock, and the margin covers both.
func TestStockIsFreedAfterTheHoldAndWithinTheMargin(t *testing.T) {
	store, bank := &deadlines{}, &ordertest.Bank{Scope: "test"}
	i, err := bank.Prepare(t.Context(), ordertest.Order("ORD-1"), order.PrepareKey("test", "ORD-1"))
	functiontest.Must(t, err)
	c := environment{Stock: "stock", Hold: time.Hour, Stripe: provider.Stripe{Timeout: 8 * time.Second}}
	cancellation := order.Cancellation{Store: store, Payments: bank, Canceler: bank, Scope: "test"}
	r := order.Record{
		OrderID: "ORD-1", Status: order.Declined, Intent: i.ID, Total: i.Total, Stock: order.Quantities{"MUG": 1},
		CreatedAt: noon(), UpdatedAt: noon(),
	}
	for after, want := range map[time.Duration]error{time.Hour - 1: nil, time.Hour: context.DeadlineExceeded} {
		store.left = 0
		_, err := newCancelDeclined(c, cancellation, func() time.Time { return noon().Add(after) })(t.Context(), r)
		most := c.margin() - c.Stripe.Timeout - config.AWSResponseTimeout
		if !errors.Is(err, want) || (store.left > 0) != (want != nil) || store.left > most {
			t.Errorf("after %v: got %v left and error %v, want at most %v, and %v", after, store.left, err, most, want)
		}
	}
	if newCancelDeclined(environment{}, cancellation, noon) != nil {
		t.Error("without a stock table: got a function, want none")
	}
}

package main

import (
	"context"
	"testing"
	"time"

	"orderonce/adapters/config"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/functions/internal/provider"
)

func TestStockAreFreedAfterTheHold(t *testing.T) {
	t.Parallel()
	store, bank := ordertest.NewMemoryWithStock(), &ordertest.Bank{Scope: "test"}
	d := ordertest.Draft("ORD-1")
	d.Payment.Method = ordertest.PaymentMethod(ordertest.NeedsAuthentication)
	o, err := order.New(d)
	if err != nil {
		t.Fatal(err)
	}
	for sku := range o.Quantities() {
		if _, err := store.AddStock(t.Context(), sku, 1); err != nil {
			t.Fatal(err)
		}
	}
	p := order.Processor{Store: store, Payments: bank, Scope: "test", TracksStock: true, Now: noon, ConfirmTime: time.Second}
	p.Process(t.Context(), o, noon(), order.Lease{Owner: "first", From: noon(), Until: noon().Add(time.Minute)})
	c := environment{Stock: "stock", Hold: time.Hour, Stripe: provider.Stripe{Timeout: time.Second}}
	c.Scope = "test"
	for _, step := range []struct {
		after time.Duration
		want  order.Status
	}{{time.Hour - 1, order.ActionRequired}, {time.Hour, order.Canceled}} {
		free := newCancelDeclined(c, store, bank, func() time.Time { return noon().Add(step.after) })
		record, err := store.Load(t.Context(), "ORD-1")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := free(t.Context(), record); err != nil || got.Status != step.want {
			t.Errorf("after %v: got %s, %v, want %s", step.after, got.Status, err, step.want)
		}
	}
	if newCancelDeclined(environment{}, store, bank, noon) != nil {
		t.Error("without a stock table: got a function, want none")
	}
}

// deadlines is a store whose Load reports the time that is left.
type deadlines struct {
	order.Store
	left time.Duration
}

func (d *deadlines) Load(ctx context.Context, _ order.ID) (order.Record, error) {
	at, _ := ctx.Deadline()
	d.left = time.Until(at)
	return order.Record{}, context.DeadlineExceeded
}

// A look makes its own calls before it frees stock, and the margin covers both.
func TestFreeingStockEndsWithinTheMargin(t *testing.T) {
	t.Parallel()
	store, bank := &deadlines{}, &ordertest.Bank{Scope: "test"}
	i, err := bank.Prepare(t.Context(), ordertest.Order("ORD-1"), order.PrepareKey("test", "ORD-1"))
	if err != nil {
		t.Fatal(err)
	}
	c := environment{Stock: "stock", Hold: time.Hour, Stripe: provider.Stripe{Timeout: 8 * time.Second}}
	c.Scope = "test"
	r := order.Record{
		OrderID: "ORD-1", Status: order.Declined, Intent: i.ID, Total: i.Total, Stock: order.Quantities{"MUG": 1},
	}
	_, err = newCancelDeclined(c, store, bank, noon)(t.Context(), r)
	most := c.margin() - c.Stripe.Timeout - config.AWSResponseTimeout
	if err == nil || store.left <= 0 || store.left > most {
		t.Errorf("got %v left and error %v, want at most %v", store.left, err, most)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/functions/internal/functiontest"
)

// tracked is a store with three mugs and three of every other SKU, which counts its
// reads, and a bank that may refuse to cancel.
type tracked struct {
	*ordertest.Memory
	*ordertest.Bank

	loads int
	down  error
}

func newTracked(t *testing.T) *tracked {
	t.Helper()
	w := &tracked{Memory: ordertest.NewMemoryWithStock(), Bank: &ordertest.Bank{Scope: "test"}}
	for sku := range ordertest.Order("ORD-1").Quantities() {
		_, err := w.AddStock(t.Context(), sku, 3)
		functiontest.Must(t, err)
	}
	return w
}

func (w *tracked) Load(ctx context.Context, id order.ID) (order.Record, error) {
	w.loads++
	return w.Memory.Load(ctx, id)
}

func (w *tracked) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	if w.down != nil {
		return order.Intent{}, w.down
	}
	return w.Bank.CancelIntent(ctx, id, k)
}

// deliver processes an order with this card.
func (w *tracked) deliver(t *testing.T, card ordertest.Card, tracks bool) order.Result {
	t.Helper()
	o := ordertest.OrderWith("ORD-1", ordertest.PaymentMethod(card))
	p := order.Processor{
		Store: w, Payments: w, TracksStock: tracks, Scope: "test", Now: time.Now, ConfirmTime: time.Second,
	}
	now := time.Now()
	settle := p.Process
	if tracks {
		settle = freesStock(&p, w)
	}
	return settle(t.Context(), o, now, order.Lease{Owner: now.String(), From: now, Until: now.Add(time.Hour)})
}

// state returns the order's status and how many mugs are available, reserved and sold.
func (w *tracked) state(t *testing.T) string {
	t.Helper()
	row, err := w.Memory.Load(t.Context(), "ORD-1")
	functiontest.Must(t, err)
	mugs, err := w.Stock(t.Context(), "MUG")
	functiontest.Must(t, err)
	return fmt.Sprint(row.Status, " ", mugs.Available, mugs.Reserved, mugs.Sold)
}

func TestADeclinedOrderFreesItsStock(t *testing.T) {
	for claim, tt := range map[string]struct {
		card   ordertest.Card
		tracks bool
		status order.Status // of the result: what the alarm of declines counts
		loads  int
		want   string
	}{
		"a declined order is canceled":       {ordertest.Declines, true, order.Declined, 3, "canceled 3 0 0"},
		"a paid order costs no further call": {ordertest.Pays, true, order.Paid, 0, "paid 2 0 1"},
		"an order that needs authentication keeps its stock": {
			ordertest.NeedsAuthentication, true, order.ActionRequired, 0, "action_required 2 1 0",
		},
		"without a stock table it stays declined": {ordertest.Declines, false, order.Declined, 0, "declined 3 0 0"},
	} {
		w := newTracked(t)
		r := w.deliver(t, tt.card, tt.tracks)
		if got := w.state(t); r.Verdict != order.Done || r.Status != tt.status || w.loads != tt.loads || got != tt.want {
			t.Errorf("%s: got %+v, %d loads and %s, want it done, %s, %d and %s", claim, r, w.loads, got, tt.status, tt.loads, tt.want)
		}
	}
}

func TestADeliveryThatCouldNotFreeTheStockComesBack(t *testing.T) {
	w := newTracked(t)
	w.down = &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("down")}
	r := w.deliver(t, ordertest.Declines, true)
	if r.Verdict != order.Redeliver || r.Reason != order.ReasonUnavailable || r.Status != order.Declined || r.Intent != "pi_1" {
		t.Errorf("got %+v, want a declined order to be redelivered", r)
	}
	if got := w.state(t); got != "declined 2 1 0" {
		t.Errorf("got %s, want its stock reserved", got)
	}
	w.down = nil
	if r, got := w.deliver(t, ordertest.Declines, true), w.state(t); r.Verdict != order.Done || got != "canceled 3 0 0" {
		t.Errorf("redelivered: got %+v and %s, want it done and its stock available", r, got)
	}
}

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/functions/internal/consumer"
)

// tracked is a store with three units of each SKU, and a bank.
type tracked struct {
	*testing.T

	store *ordertest.Memory
	bank  *ordertest.Bank
	loads int
}

func newTracked(t *testing.T) *tracked {
	t.Helper()
	w := &tracked{T: t, store: ordertest.NewMemoryWithStock(), bank: &ordertest.Bank{Scope: "test"}}
	for sku := range ordertest.Order("ORD-1").Quantities() {
		_, err := w.store.AddStock(t.Context(), sku, 3)
		must(t, err)
	}
	return w
}

// Load counts the reads of the table.
func (w *tracked) Load(ctx context.Context, id order.ID) (order.Record, error) {
	w.loads++
	return w.store.Load(ctx, id)
}

// records is the store, with each Load counted.
type records struct {
	order.Store
	*tracked
}

func (r records) Load(ctx context.Context, id order.ID) (order.Record, error) {
	return r.tracked.Load(ctx, id)
}

// deliver processes an order with this card, and frees its stock at a provider that may
// be down.
func (w *tracked) deliver(card ordertest.Card, stock string, down error) order.Result {
	w.Helper()
	d := ordertest.Draft("ORD-1")
	d.Payment.Method = ordertest.PaymentMethod(card)
	o, err := order.New(d)
	must(w.T, err)
	c := environment{Stock: stock, Queue: consumer.Queue{AnswerTime: time.Second}}
	c.Scope = "test"
	do := newProcess(c, records{w.store, w}, canceler{w.bank, down})
	l := lease(time.Hour)
	l.Owner = time.Now().String()
	return do(w.Context(), o, time.Now(), l)
}

// canceler is a bank that may refuse to cancel.
type canceler struct {
	*ordertest.Bank
	err error
}

func (c canceler) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	if c.err != nil {
		return order.Intent{}, c.err
	}
	return c.Bank.CancelIntent(ctx, id, k)
}

func (w *tracked) wantStock(want order.Stock) {
	w.Helper()
	got, err := w.store.Stock(w.Context(), want.SKU)
	must(w.T, err)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("stock (-want +got):\n%s", diff)
	}
}

func TestADeclinedOrderFreesItsStock(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card   ordertest.Card
		stock  string
		status order.Status // of the result: what the alarm of declines counts
		row    order.Status
		loads  int
		want   order.Stock
	}{
		"a declined order is canceled": {
			ordertest.Declines, "stock", order.Declined, order.Canceled, 3, order.Stock{SKU: "MUG", Available: 3},
		},
		"a paid order costs no further call": {
			ordertest.Pays, "stock", order.Paid, order.Paid, 0, order.Stock{SKU: "MUG", Available: 2, Sold: 1},
		},
		"an order that needs authentication keeps its stock": {
			ordertest.NeedsAuthentication, "stock", order.ActionRequired, order.ActionRequired, 0,
			order.Stock{SKU: "MUG", Available: 2, Reserved: 1},
		},
		"without a stock table a declined order stays declined, and reserves nothing": {
			ordertest.Declines, "", order.Declined, order.Declined, 0, order.Stock{SKU: "MUG", Available: 3},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newTracked(t)
			r := w.deliver(tt.card, tt.stock, nil)
			if r.Verdict != order.Done || r.Status != tt.status || w.loads != tt.loads {
				t.Errorf("got %+v and %d loads, want it done, %s and %d", r, w.loads, tt.status, tt.loads)
			}
			w.wantStock(tt.want)
			if row, err := w.store.Load(t.Context(), "ORD-1"); err != nil || row.Status != tt.row {
				t.Errorf("got the row %s, %v, want %s", row.Status, err, tt.row)
			}
		})
	}
}

func TestADeliveryThatCouldNotFreeTheStockComesBack(t *testing.T) {
	t.Parallel()
	w := newTracked(t)
	down := &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("down")}
	r := w.deliver(ordertest.Declines, "stock", down)
	if r.Verdict != order.Redeliver || r.Reason != order.ReasonUnavailable || r.Status != order.Declined || r.Intent != "pi_1" {
		t.Errorf("got %+v, want a declined order to be redelivered", r)
	}
	w.wantStock(order.Stock{SKU: "MUG", Available: 2, Reserved: 1})
	if r := w.deliver(ordertest.Declines, "stock", nil); r.Verdict != order.Done {
		t.Errorf("redelivered: got %+v, want it done", r)
	}
	w.wantStock(order.Stock{SKU: "MUG", Available: 3})
}

// lease returns the lease of an invocation that ends after d.
func lease(d time.Duration) order.Lease {
	return order.Lease{Owner: owner, From: time.Now(), Until: time.Now().Add(d)}
}

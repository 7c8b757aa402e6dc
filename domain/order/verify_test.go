package order_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// wrongProvider is a provider that returns mismatched intents from one call on.
type wrongProvider struct {
	order.Payments

	from  ordertest.Call
	skips int // correct responses to this call before the first wrong one
	wrong bool
	alter func(*order.Intent)
}

func (l *wrongProvider) response(c ordertest.Call, i order.Intent, err error) (order.Intent, error) {
	if c == l.from {
		l.skips--
		l.wrong = l.wrong || l.skips < 0
	}
	if l.wrong {
		l.alter(&i)
	}
	return i, err
}

func (l *wrongProvider) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	i, err := l.Payments.Prepare(ctx, o, k)
	return l.response(ordertest.Prepare, i, err)
}

func (l *wrongProvider) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	i, err := l.Payments.Confirm(ctx, id, k)
	return l.response(ordertest.Confirm, i, err)
}

func (l *wrongProvider) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	i, err := l.Payments.Read(ctx, id)
	return l.response(ordertest.Read, i, err)
}

// mismatches returns the changes that make an intent belong to another order.
func mismatches() map[string]func(*order.Intent) {
	return map[string]func(*order.Intent){
		"another order":                    func(i *order.Intent) { i.OrderID = "ORD-2" },
		"no order":                         func(i *order.Intent) { i.OrderID = "" },
		"an order id with the same prefix": func(i *order.Intent) { i.OrderID += "0" },
		"another scope":                    func(i *order.Intent) { i.Scope = "other" },
		"no scope":                         func(i *order.Intent) { i.Scope = "" },
		"a scope with the same prefix":     func(i *order.Intent) { i.Scope += "-2" },
		"another amount":                   func(i *order.Intent) { i.Total.Amount++ },
		"a hundredth of the amount":        func(i *order.Intent) { i.Total.Amount /= 100 },
		"another currency":                 func(i *order.Intent) { i.Total.Currency = "eur" },
		"a currency without decimals":      func(i *order.Intent) { i.Total.Currency = "jpy" },
	}
}

// Every response is compared with the order in each field before it is used.
func TestAMismatchedIntentIsNeverUsed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from   ordertest.Call
		skips  int
		before func(w *world)
		last   ordertest.Call // before which Bind, Confirm and Finish are allowed
	}{
		{from: ordertest.Prepare, last: ordertest.Prepare},
		{from: ordertest.Prepare, skips: 1, before: func(w *world) { w.storeFailure(w.prepareKey()) }, last: ordertest.Prepare},
		{from: ordertest.Confirm, last: ordertest.Confirm},
		{from: ordertest.Read, before: func(w *world) { w.crashAfter(ordertest.Bind) }, last: ordertest.Read},
	} {
		for name, alter := range mismatches() {
			t.Run(string(tt.from)+" of "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, ordertest.Pays)
				if tt.before != nil {
					tt.before(w)
				}
				w.payments = &wrongProvider{Payments: w.bank, from: tt.from, skips: tt.skips, alter: alter}
				got := w.deliver(noFault)
				var mismatch *order.MismatchError
				if got.Verdict != order.Park || got.Reason != order.ReasonMismatch || !errors.As(got.Err, &mismatch) {
					t.Errorf("got %+v, want %s for %s with a MismatchError", got, order.Park, order.ReasonMismatch)
				}
				after := w.calls[slices.Index(w.calls, tt.last)+1:]
				for _, c := range after {
					if c == ordertest.Bind || c == ordertest.Confirm || c == ordertest.Finish {
						t.Errorf("got calls %v after the wrong response, want no %s", after, c)
					}
				}
				if r := w.record(); r.Status != order.Open {
					t.Errorf("got record status %s, want %s", r.Status, order.Open)
				}
			})
		}
	}
}

func TestRefreshRejectsAMismatchedIntent(t *testing.T) {
	t.Parallel()
	for name, alter := range mismatches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			w.crashAfter(ordertest.Confirm)
			before := w.store.AppendState(nil)
			wrong := &wrongProvider{Payments: w.bank, from: ordertest.Read, alter: alter}
			_, err := order.Refresh(t.Context(), w.store, wrong, "test", w.order.ID(), w.now)
			if _, mismatch := errors.AsType[*order.MismatchError](err); !mismatch {
				t.Errorf("got %v, want a *MismatchError", err)
			}
			if after := w.store.AppendState(nil); string(after) != string(before) {
				t.Errorf("got state %q, want it unchanged: %q", after, before)
			}
		})
	}
}

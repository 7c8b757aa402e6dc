package order_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// liar is a provider whose answers, from one kind of call on, describe an intent that was
// made for something else.
type liar struct {
	order.Payments

	from  ordertest.Call
	skips int // calls of this kind that are answered truthfully
	lies  bool
	spoil func(*order.Intent)
}

func (l *liar) answer(c ordertest.Call, i order.Intent, err error) (order.Intent, error) {
	if c == l.from {
		l.skips--
		l.lies = l.lies || l.skips < 0
	}
	if l.lies {
		l.spoil(&i)
	}
	return i, err
}

func (l *liar) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	i, err := l.Payments.Prepare(ctx, o, k)
	return l.answer(ordertest.Prepare, i, err)
}

func (l *liar) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	i, err := l.Payments.Confirm(ctx, id, k)
	return l.answer(ordertest.Confirm, i, err)
}

func (l *liar) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	i, err := l.Payments.Read(ctx, id)
	return l.answer(ordertest.Read, i, err)
}

// wrongs are what makes an intent another order's, each alone.
func wrongs() map[string]func(*order.Intent) {
	return map[string]func(*order.Intent){
		"another order":                      func(i *order.Intent) { i.OrderID = "ORD-2" },
		"no order":                           func(i *order.Intent) { i.OrderID = "" },
		"an order whose id begins like ours": func(i *order.Intent) { i.OrderID += "0" },
		"another deployment":                 func(i *order.Intent) { i.Scope = "other" },
		"no deployment":                      func(i *order.Intent) { i.Scope = "" },
		"a deployment named like ours":       func(i *order.Intent) { i.Scope += "-2" },
		"another amount":                     func(i *order.Intent) { i.Total.Amount++ },
		"a hundredth of the amount":          func(i *order.Intent) { i.Total.Amount /= 100 },
		"another currency":                   func(i *order.Intent) { i.Total.Currency = "eur" },
		"a currency without decimals":        func(i *order.Intent) { i.Total.Currency = "jpy" },
	}
}

// Each kind of answer is compared with the order in every field before anything is done
// with it.
func TestAnIntentOfSomethingElseIsNeverUsed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from   ordertest.Call
		skips  int
		before func(w *world)
		last   ordertest.Call // that may be made, but for reads and the release
	}{
		{from: ordertest.Prepare, last: ordertest.Prepare},
		{from: ordertest.Prepare, skips: 1, before: func(w *world) { w.burn(w.firstKey()) }, last: ordertest.Prepare},
		{from: ordertest.Confirm, last: ordertest.Confirm},
		{from: ordertest.Read, before: func(w *world) { w.dieAfter(ordertest.Bind) }, last: ordertest.Read},
	} {
		for name, spoil := range wrongs() {
			t.Run(string(tt.from)+" of "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, ordertest.Pays)
				if tt.before != nil {
					tt.before(w)
				}
				w.payments = &liar{Payments: w.bank, from: tt.from, skips: tt.skips, spoil: spoil}
				got := w.deliver(asIs)
				var mismatch *order.MismatchError
				if got.Verdict != order.Park || got.Reason != order.ReasonMismatch || !errors.As(got.Err, &mismatch) {
					t.Errorf(
						"got %s for %s: %v, want %s for %s",
						got.Verdict,
						got.Reason,
						got.Err,
						order.Park,
						order.ReasonMismatch,
					)
				}
				after := w.calls[slices.Index(w.calls, tt.last)+1:]
				for _, c := range after {
					if c == ordertest.Bind || c == ordertest.Confirm || c == ordertest.Finish {
						t.Errorf("got calls %v after the wrong answer, want no %s", after, c)
					}
				}
				if r := w.record(); r.Status != order.Open {
					t.Errorf("got a record that is %s, want %s", r.Status, order.Open)
				}
			})
		}
	}
}

func TestRefreshBelievesNoIntentOfSomethingElse(t *testing.T) {
	t.Parallel()
	for name, spoil := range wrongs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			w.dieAfter(ordertest.Confirm)
			before := w.store.AppendState(nil)
			lies := &liar{Payments: w.bank, from: ordertest.Read, spoil: spoil}
			_, err := order.Refresh(t.Context(), w.store, lies, "test", w.order.ID(), w.now)
			if _, mismatch := errors.AsType[*order.MismatchError](err); !mismatch {
				t.Errorf("got %v, want a *MismatchError", err)
			}
			if after := w.store.AppendState(nil); string(after) != string(before) {
				t.Errorf("got state %q, want it as before: %q", after, before)
			}
		})
	}
}

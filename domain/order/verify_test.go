package order_test

import (
	"errors"
	"slices"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

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
	for _, tt := range []struct {
		from   ordertest.Call // before which Bind, Confirm and Finish are allowed
		before func(w *world)
	}{
		{ordertest.Prepare, func(*world) {}},
		{ordertest.Prepare, func(w *world) { w.storeFailure(w.prepareKey()) }},
		{ordertest.Confirm, func(*world) {}},
		{ordertest.Read, crashAfter(ordertest.Bind)},
	} {
		for name, alter := range mismatches() {
			t.Run(string(tt.from)+" of "+name, func(t *testing.T) {
				w := newWorld(t, ordertest.Pays)
				tt.before(w)
				w.payments = changedIntents{w.bank, changeFrom(tt.from, alter)}
				got := w.deliver(noFault)
				var mismatch *order.MismatchError
				if got.Verdict != order.Park || got.Reason != order.ReasonMismatch || !errors.As(got.Err, &mismatch) {
					t.Errorf("got %+v, want %s for %s with a MismatchError", got, order.Park, order.ReasonMismatch)
				}
				after := w.calls[slices.Index(w.calls, tt.from)+1:]
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

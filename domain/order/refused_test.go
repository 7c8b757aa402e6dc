package order_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// unknownMethod returns the error of a provider that does not know the payment method.
func unknownMethod() error {
	return &order.PaymentError{Kind: order.KindRefused, Code: "resource_missing", Err: ordertest.ErrConnection}
}

func TestARefusedOrderIsRecordedAndChargedAfterARedrive(t *testing.T) {
	for _, refuses := range []ordertest.Call{ordertest.Prepare, ordertest.Confirm} {
		t.Run(string(refuses), func(t *testing.T) {
			w := newWorld(t, ordertest.Pays)
			got := w.deliver(failCall(refuses, unknownMethod()))
			if got.Verdict != order.Park || got.Reason != order.ReasonRefused || got.Status != order.Refused {
				t.Errorf("got %+v, want it parked as refused", got)
			}
			r := w.record()
			if r.Status != order.Refused || r.Failure != "resource_missing" || r.Owner != "" ||
				!r.DueAt.IsZero() {
				t.Errorf("got record %+v, want status refused, failure resource_missing, no owner and no due time", r)
			}

			got = w.redeliver(noFault)
			if got.Verdict != order.Done || got.Status != order.Paid || len(w.bank.Charges(w.order.ID())) != 1 {
				t.Errorf("after the redrive: got %+v, charges %v, want one charge", got, w.bank.Charges(w.order.ID()))
			}
			var changes []order.Event
			for _, e := range w.record().Events {
				changes = append(changes, order.Event{Seq: e.Seq, From: e.From, To: e.To})
			}
			want := []order.Event{
				{Seq: 1, From: order.Open, To: order.Refused},
				{Seq: 2, From: order.Refused, To: order.Open},
				{Seq: 3, From: order.Open, To: order.Paid},
			}
			if diff := cmp.Diff(changes, want); diff != "" {
				t.Errorf("events (-got +want):\n%s", diff)
			}
		})
	}
}

func TestARefusalWithoutACodeIsUnexplained(t *testing.T) {
	w := newWorld(t, ordertest.Pays)
	w.deliver(failCall(ordertest.Prepare, &order.PaymentError{Kind: order.KindRefused, Err: ordertest.ErrConnection}))
	if r := w.record(); r.Status != order.Refused || r.Failure != "unexplained" {
		t.Errorf("got status %s, failure %q, want refused and unexplained", r.Status, r.Failure)
	}
}

func TestARefusedOrderIsParkedOnlyIfTheRefusalIsRecorded(t *testing.T) {
	w := newWorld(t, ordertest.Pays)
	got := w.deliver(func(c ordertest.Call, do func() error) error {
		if c == ordertest.Prepare {
			return unknownMethod()
		}
		return ordertest.LoseRequestOf(ordertest.Finish)(c, do)
	})
	if got.Verdict != order.Redeliver || got.Reason != order.ReasonStore || got.Status != order.Open {
		t.Errorf("got %+v, want it redelivered as store_unavailable", got)
	}
	if r := w.record(); r.Status != order.Open {
		t.Errorf("got record status %s, want open", r.Status)
	}
}

package order_test

import (
	"errors"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func (w *world) cancel() (order.Record, error) {
	c := order.Cancellation{Store: w.store, Payments: w.bank, Canceler: w.bank, Scope: "test"}
	return c.Cancel(w.Context(), w.order.ID(), w.now)
}

// state returns the state of the order's intent, or "" if it has none.
func (w *world) state() order.IntentState {
	w.Helper()
	r := w.record()
	if r.Intent == "" {
		return ""
	}
	i, err := w.bank.Read(w.Context(), r.Intent)
	w.must(err)
	return i.State
}

func TestCancel(t *testing.T) {
	delivered := func(w *world) { w.deliver(noFault) }
	for claim, tt := range map[string]struct {
		card   ordertest.Card
		before func(*world)
		want   order.Status
		intent order.IntentState
	}{
		"an order that a worker has just claimed": {
			ordertest.Pays, func(w *world) { w.claim() }, order.Canceled, "",
		},
		"an order whose intent is not bound": {
			ordertest.Pays, crashAfter(ordertest.Prepare), order.Canceled, "",
		},
		"an order whose intent is bound": {
			ordertest.Pays, crashAfter(ordertest.Bind), order.Canceled, order.IntentCanceled,
		},
		"an order that was charged": {
			ordertest.Pays, crashAfter(ordertest.Confirm), order.Paid, order.Succeeded,
		},
		"a paid order": {ordertest.Pays, delivered, order.Paid, order.Succeeded},
		"a declined order": {
			ordertest.Declines, delivered, order.Canceled, order.IntentCanceled,
		},
		"an order that waits for the customer": {
			ordertest.NeedsAuthentication, delivered, order.Canceled, order.IntentCanceled,
		},
		"an order that waits for the bank": {
			ordertest.TakesDays, delivered, order.Canceled, order.IntentCanceled,
		},
		"a refused order": {ordertest.DoesNotExist, delivered, order.Canceled, ""},
		"an order whose intent was canceled at the provider": {
			ordertest.Declines, func(w *world) { delivered(w); w.bank.Cancel("pi_1") }, order.Canceled, order.IntentCanceled,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t, tt.card)
			tt.before(w)
			got, err := w.cancel()
			if err != nil || got.Status != tt.want || w.state() != tt.intent {
				t.Errorf("got %s, %v, intent %q, want %s, intent %q", got.Status, err, w.state(), tt.want, tt.intent)
			}
			again, err := w.cancel()
			if err != nil || again.Status != tt.want || again.Seq != got.Seq {
				t.Errorf("again: got %s, seq %d, %v, want the same record", again.Status, again.Seq, err)
			}
			w.now = w.now.Add(20 * 24 * time.Hour)
			if r := w.deliver(noFault); r.Verdict != order.Done || r.Status != tt.want || w.violations() != "" {
				t.Errorf("its message comes back: got %+v, %s, want %s", r, w.violations(), tt.want)
			}
		})
	}
}

func TestACancellationWhoseResponseIsLostMayBeRepeated(t *testing.T) {
	for fault, want := range map[ordertest.Fault]order.Status{
		ordertest.LosesResponse: order.Canceled, ordertest.StoresFailureAfterEffect: order.Canceled,
		ordertest.LosesRequest: order.Open, ordertest.StoresFailure: order.Open, ordertest.ReturnsUnavailable: order.Open,
	} {
		t.Run(string(fault), func(t *testing.T) {
			w := newWorld(t, ordertest.Pays)
			w.crashAfter(ordertest.Bind)
			w.bank.Fail(ordertest.Cancel, fault)
			got, err := w.cancel()
			if got.Status != want || (err == nil) != (want == order.Canceled) {
				t.Errorf("got %s, %v, want %s", got.Status, err, want)
			}
			w.now = w.now.Add(time.Second)
			if again, err := w.cancel(); err != nil || again.Status != order.Canceled || w.state() != order.IntentCanceled {
				t.Errorf("again: got %s, %v, intent %s, want it canceled", again.Status, err, w.state())
			}
		})
	}
}

func TestAnOrderWhoseLostRecordMayBeChargedIsRestoredBeforeItIsCanceled(t *testing.T) {
	w := newWorld(t, ordertest.Pays)
	w.findLost()
	_, err := w.cancel()
	if lost, ok := errors.AsType[*order.RecordLostError](err); !ok || lost.Intent != "pi_1" || w.record().Status != order.Open {
		t.Errorf("got %v and an order that is %s, want a RecordLostError of pi_1 and no change", err, w.record().Status)
	}
}

func TestCancelChangesNothingOfAnotherOrder(t *testing.T) {
	w := newWorld(t, ordertest.Pays)
	if _, err := w.cancel(); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("no record: got %v, want ErrNotFound", err)
	}
	other := newOrder(t, with(func(d *order.Draft) { d.ID = "OTHER-1" }))
	w.bind(w.prepare(other, order.PrepareKey("test", other.ID())))
	_, err := w.cancel()
	if _, mismatch := errors.AsType[*order.MismatchError](err); !mismatch || w.state() != order.NeedsConfirmation {
		t.Errorf("another order's intent: got %v, intent %s, want a MismatchError and the intent as it was", err, w.state())
	}
}

package settle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

func (w *world) refresh() (order.Record, error) {
	return settle.Refresh(w.Context(), w, w, "test", "ORD-1", w.now)
}

func TestRefreshChangesNothingOnAnError(t *testing.T) {
	deliver := func(last ordertest.Call) func(*world) {
		return func(w *world) { w.deliver("ORD-1", ordertest.Pays, last) }
	}
	bound := func(id order.IntentID) func(*world) {
		return func(w *world) {
			w.deliver("ORD-1", ordertest.Pays, ordertest.Bind)
			w.deliver("ORD-2", ordertest.Pays, "")
			w.store.Edit("ORD-1", func(r *order.Record) { r.Intent = id })
		}
	}
	for claim, tt := range map[string]struct {
		before func(w *world)
		want   string
	}{
		"no record":                             {func(*world) {}, order.ErrNotFound.Error()},
		"no intent is bound":                    {deliver(ordertest.Begin), order.ErrNoIntent.Error()},
		"the provider does not know the intent": {bound("pi_gone"), "misconfigured"},
		"the intent belongs to another order":   {bound("pi_2"), `intent pi_2: orderId is "ORD-2", want "ORD-1"`},
		"a paid order is not paid at the provider": {func(w *world) {
			deliver("")(w)
			w.change = func(i *order.Intent) { i.State = order.IntentCanceled }
		}, "invalid transition: paid -> canceled"},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			tt.before(w)
			before := string(w.store.AppendState(nil))
			got, err := w.refresh()
			if !strings.Contains(fmt.Sprint(err), tt.want) || got.OrderID != w.record("ORD-1").OrderID {
				t.Errorf("got record %+v, error %v, want the order and %q", got, err, tt.want)
			}
			if after := string(w.store.AppendState(nil)); after != before {
				t.Errorf("got state %q, want it unchanged: %q", after, before)
			}
		})
	}
}

func TestFinishAfterRefreshSucceeds(t *testing.T) {
	w := newWorld(t)
	c := w.claimed()
	w.confirm("pi_1")
	if r, err := w.refresh(); err != nil || r.Status != order.Paid {
		t.Errorf("during the attempt: got %s, %v, want paid", r.Status, err)
	}
	err := c.Finish(t.Context(), w.store, order.Outcome{Status: order.Paid, Intent: "pi_1"}, w.now)
	if r := w.record("ORD-1"); err != nil || r.Status != order.Paid || len(r.Events) != 1 {
		t.Errorf("got %v and %+v, want it paid by one event", err, r)
	}
}

// An earlier attempt's Confirm may be executed after a later attempt was refused.
func TestARefusedOrderWhoseIntentSucceedsLaterIsPaid(t *testing.T) {
	w := newWorld(t)
	refused := order.Outcome{Status: order.Refused, Intent: "pi_1", Failure: "resource_missing"}
	w.must(w.claimed().Finish(t.Context(), w.store, refused, w.now))
	w.confirm("pi_1")
	if r, err := w.refresh(); err != nil || r.Status != order.Paid {
		t.Errorf("got %s, %v, want paid", r.Status, err)
	}
}

// restore restores ORD-1 from the provider's pi_1.
func (w *world) restore() (order.Record, error) {
	return settle.Restore(w.Context(), w, w, "test", "ORD-1", "pi_1", w.now)
}

// lose loses the record of ORD-1 and, for the age of its message, the bank's keys.
func (w *world) lose() {
	w.store.Delete("ORD-1")
	w.bank.ForgetKeys()
	w.age = 25 * time.Hour
}

func TestARestoredOrderThatWasChargedIsPaidAndItsMessageChargesNothing(t *testing.T) {
	w := newWorld(t)
	w.deliver("ORD-1", ordertest.Pays, "")
	w.lose()
	for range 2 { // the second time changes nothing
		r, err := w.restore()
		if err != nil || r.Status != order.Paid || r.Intent != "pi_1" || r.Mode != order.TestMode || r.Seq != 1 {
			t.Fatalf("got %+v, %v, want it paid with pi_1 in test mode, after one transition", r, err)
		}
	}
	w.wait(time.Hour)
	got := w.deliver("ORD-1", ordertest.Pays, "")
	if n := len(w.bank.Charges("ORD-1")); got.Reason != order.ReasonDuplicate || n != 1 {
		t.Errorf("got %+v and %d charges, want a duplicate and 1", got, n)
	}
}

func TestAParkedOrderIsRestoredAndARedriveChargesItsIntentOnce(t *testing.T) {
	w := newWorld(t)
	w.deliver("ORD-1", ordertest.Pays, ordertest.Bind)
	_, err := w.Prepare(t.Context(), ordertest.Order("ORD-1"), order.PrepareAgainKey("test", "ORD-1", 1))
	w.must(err)
	w.lose()
	w.wait(time.Hour)
	if got := w.deliver("ORD-1", ordertest.Pays, ""); got.Reason != order.ReasonRecordLost {
		t.Fatalf("got %+v, want reason record_lost", got)
	}
	if r, err := w.restore(); err != nil || r.Status != order.Open || r.Intent != "pi_1" {
		t.Fatalf("got %+v, %v, want it open with pi_1", r, err)
	}
	w.wait(time.Hour)
	got := w.deliver("ORD-1", ordertest.Pays, "")
	if n := len(w.bank.Charges("ORD-1")); got.Status != order.Paid || got.Intent != "pi_1" || n != 1 {
		t.Errorf("got %+v and %d charges, want it paid once with pi_1", got, n)
	}
}

func TestRestoreRefusesAnotherIntent(t *testing.T) {
	for want, change := range map[string]func(i *order.Intent){
		"orderId":                         func(i *order.Intent) { i.OrderID = "ORD-2" },
		"scope":                           func(i *order.Intent) { i.Scope = "staging" },
		settle.ErrNoFingerprint.Error():   func(i *order.Intent) { i.Fingerprint = "" },
		"read intent pi_1: misconfigured": nil, // the provider does not know it
	} {
		w := newWorld(t)
		if w.change = change; change != nil {
			w.deliver("ORD-1", ordertest.Pays, "")
			w.lose()
		}
		if _, err := w.restore(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		if r := w.record("ORD-1"); r.Status != "" {
			t.Errorf("%s: got %+v, want no record", want, r)
		}
	}
}

package order_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// lose takes the order's record away, as a restore from an older backup does.
func (w *world) lose() {
	w.store.Delete(w.order.ID())
	w.lost = true
}

// late makes the delivery one of a message that was first sent so long ago.
func late(w *world, by time.Duration) { w.sent = w.now.Add(-by) }

// lostCases are orders whose record the store lost, and orders that only look like it.
func lostCases() []processCase {
	lost := order.Result{Verdict: order.Park, Reason: order.ReasonRecordLost, Intent: "pi_1"}
	return []processCase{
		{
			name: "an old message whose record was lost is parked if the provider knows an intent",
			before: func(w *world) {
				w.deliver(asIs)
				w.bank.ForgetKeys()
				w.lose()
				late(w, 25*time.Hour)
			},
			want: claimed(1, lost), calls: "begin find release",
		},
		{
			name: "a redrive of it is parked again, because the record is still younger than the message",
			before: func(w *world) {
				w.deliver(asIs)
				w.bank.ForgetKeys()
				w.lose()
				late(w, 25*time.Hour)
				w.deliver(asIs)
			},
			want: claimed(2, lost), calls: "begin find release",
		},
		{
			name: "the intent that an attempt prepared before it died is used, although its record is late",
			before: func(w *world) {
				late(w, 25*time.Hour)
				w.dieAfter(ordertest.Prepare)
				w.bank.ForgetKeys()
			},
			want: order.Result{
				Verdict: order.Done, Reason: order.ReasonSettled, Status: order.Paid, Attempt: 2, Intent: "pi_1",
			},
			calls: "begin find bind confirm finish",
		},
		{
			name: "an intent for other content is not used",
			before: func(w *world) {
				w.prepare(w.twice(), w.firstKey())
				late(w, 25*time.Hour)
			},
			want: claimed(1, lost), calls: "begin find release",
		},
		{
			name: "two intents that wait are for a person to look at",
			before: func(w *world) {
				w.prepare(w.order, w.firstKey())
				w.prepare(w.order, w.againKey(1))
				late(w, 25*time.Hour)
			},
			want: claimed(1, lost), calls: "begin find release",
		},
		{
			name: "an old message of an order that nobody prepared is charged", before: func(w *world) { late(w, 25*time.Hour) },
			want: done(order.Paid, 1), calls: "begin find prepare bind confirm finish",
		},
		{
			name: "a message of exactly a day is not searched for", before: func(w *world) { late(w, 24*time.Hour) },
			want: done(order.Paid, 1), calls: "begin prepare bind confirm finish",
		},
		{
			name: "an order whose record is as old as its message is not searched for",
			before: func(w *world) {
				w.dieAfter(ordertest.Prepare)
				w.bank.ForgetKeys()
				w.sent, w.now = w.record().CreatedAt, w.now.Add(48*time.Hour)
			},
			want: order.Result{
				Verdict: order.Done, Reason: order.ReasonSettled, Status: order.Paid, Attempt: 2, Intent: "pi_2",
			},
			calls: "begin prepare bind confirm finish",
		},
		{
			name:   "a search that fails charges nobody",
			before: func(w *world) { late(w, 25*time.Hour) }, around: always(fails(ordertest.Find, refused())),
			want: claimed(
				1,
				order.Result{Verdict: order.Redeliver, Reason: order.ReasonMisconfigured, Transient: true},
			),
			calls: "begin find release",
		},
		{
			name:   "a search that is not answered charges nobody",
			before: func(w *world) { late(w, 25*time.Hour) }, around: always(ordertest.LoseRequestOf(ordertest.Find)),
			want:  claimed(1, order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnknown, Transient: true}),
			calls: "begin find release",
		},
		{
			name: "an intent that was canceled before it was bound is prepared again",
			before: func(w *world) {
				w.dieAfter(ordertest.Prepare)
				w.bank.Cancel("pi_1")
				w.now = w.now.Add(time.Hour)
			},
			want: order.Result{
				Verdict: order.Done, Reason: order.ReasonSettled, Status: order.Paid, Attempt: 2, Intent: "pi_2",
			},
			calls: "begin prepare prepare bind confirm finish",
		},
		{
			name: "an intent that was canceled after it was bound cancels the order",
			before: func(w *world) {
				w.dieAfter(ordertest.Bind)
				w.bank.Cancel("pi_1")
				w.now = w.now.Add(time.Hour)
			},
			want: done(order.Canceled, 2), calls: "begin read finish",
		},
		{
			name: "an order whose every intent is canceled at once comes back",
			before: func(w *world) {
				w.payments = changes{Payments: w.bank, on: ordertest.Prepare, times: 2, change: func(i *order.Intent) {
					i.State = order.IntentCanceled
				}}.fresh()
			},
			want:  claimed(1, order.Result{Verdict: order.Redeliver, Reason: order.ReasonReplayed, Transient: true}),
			calls: "begin prepare prepare release",
		},
	}
}

// wrongAnswerCases are providers that answer one call about another order.
func wrongAnswerCases() []processCase {
	wrong := func(on ordertest.Call) func(w *world) {
		return func(w *world) {
			w.payments = changes{
				Payments: w.bank,
				on:       on,
				times:    1,
				change:   func(i *order.Intent) { i.OrderID = "ORD-2" },
			}.fresh()
		}
	}
	return []processCase{
		{
			name: "one wrong answer to prepare is asked again", before: wrong(ordertest.Prepare),
			want: done(order.Paid, 1), calls: "begin prepare prepare bind confirm finish",
		},
		{
			name: "one wrong answer to confirm is read again", before: wrong(ordertest.Confirm),
			want: done(order.Paid, 1), calls: "begin prepare bind confirm read finish",
		},
		{
			name: "one wrong answer to read is asked again",
			before: func(w *world) {
				w.dieAfter(ordertest.Confirm)
				wrong(ordertest.Read)(w)
				w.now = w.now.Add(time.Hour)
			},
			want: done(order.Paid, 2), calls: "begin read read finish",
		},
		{
			name: "a wrong answer to a confirm that never happened leaves the order unconfirmed",
			before: func(w *world) {
				w.payments = confirmsAnother{w.bank}
			},
			want:  claimed(1, order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Intent: "pi_1"}),
			calls: "begin prepare bind confirm read release",
		},
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	recovered := func(w *world, id order.IntentID) (order.Record, error) {
		return order.Restore(w.Context(), w.store, w.bank, "test", w.order.ID(), id, w.now)
	}
	t.Run("a lost record of a charged order is paid again, and its message charges nobody", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, ordertest.Pays)
		w.deliver(asIs)
		w.bank.ForgetKeys()
		w.lose()
		r, err := recovered(w, "pi_1")
		if err != nil || r.Status != order.Paid || r.Intent != "pi_1" || r.Mode != order.TestMode {
			t.Fatalf("got %+v, %v, want it paid with pi_1 in test mode", r, err)
		}
		late(w, 25*time.Hour)
		if got := w.redeliver(asIs); got.Reason != order.ReasonDuplicate {
			t.Errorf("got %+v, want a duplicate", got)
		}
		w.isTrue()
	})
	t.Run("a parked order is recovered and a redrive charges its intent once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, ordertest.Pays)
		w.dieAfter(ordertest.Bind)
		w.prepare(w.order, w.againKey(1))
		w.bank.ForgetKeys()
		w.lose()
		late(w, 25*time.Hour)
		if got := w.redeliver(asIs); got.Reason != order.ReasonRecordLost {
			t.Fatalf("got %+v, want it parked as record_lost", got)
		}
		if r, err := recovered(w, "pi_1"); err != nil || r.Status != order.Open || r.Intent != "pi_1" {
			t.Fatalf("got %+v, %v, want it open with pi_1", r, err)
		}
		w.settledAs(w.redeliver(asIs), order.Paid)
	})
	t.Run("recover again changes nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, ordertest.Pays)
		w.deliver(asIs)
		if r, err := recovered(w, "pi_1"); err != nil || r.Seq != 1 || r.Status != order.Paid {
			t.Errorf("got %+v, %v, want it paid after one transition", r, err)
		}
	})
	for name, c := range map[string]struct {
		change func(i *order.Intent)
		want   string
	}{
		"an intent of another order is refused": {func(i *order.Intent) { i.OrderID = "ORD-2" }, "orderId"},
		"an intent of another scope is refused": {func(i *order.Intent) { i.Scope = "staging" }, "scope"},
		"an intent without a fingerprint is refused": {
			func(i *order.Intent) { i.Fingerprint = "" }, order.ErrNoFingerprint.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			w.deliver(asIs)
			w.lose()
			p := changes{Payments: w.bank, on: ordertest.Read, times: 9, change: c.change}.fresh()
			_, err := order.Restore(w.Context(), w.store, p, "test", w.order.ID(), "pi_1", w.now)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to name %q", err, c.want)
			}
			if _, err := w.store.Load(w.Context(), w.order.ID()); !errors.Is(err, order.ErrNotFound) {
				t.Errorf("got %v, want no record", err)
			}
		})
	}
	t.Run("an intent that the provider does not know recovers nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, ordertest.Pays)
		if _, err := recovered(w, "pi_1"); err == nil || !strings.Contains(err.Error(), "read intent pi_1") {
			t.Errorf("got %v, want that pi_1 cannot be read", err)
		}
	})
}

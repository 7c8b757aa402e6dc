package order_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// A refused Confirm does not prove the state of the intent, so every outcome is recorded,
// and not only a payment.
func TestARefusedConfirmRecordsTheIntentsOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		card    ordertest.Card
		during  func(w *world, confirm func() error)
		want    order.Status
		failure string
	}{
		{"it was paid", ordertest.Pays, mustConfirm, order.Paid, ""},
		{"it was declined", ordertest.Declines, mustConfirm, order.Declined, "insufficient_funds"},
		{"it needs authentication", ordertest.NeedsAuthentication, mustConfirm, order.ActionRequired, "authentication_required"},
		{"it takes days", ordertest.TakesDays, mustConfirm, order.Pending, ""},
		{"it was canceled", ordertest.Pays, func(w *world, _ func() error) { w.bank.Cancel("pi_1") }, order.Canceled, ""},
		{"it was declined and paid later", ordertest.Declines, func(w *world, confirm func() error) {
			mustConfirm(w, confirm)
			w.bank.CustomerPays("pi_1")
		}, order.Paid, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.card)
			got := w.deliver(intercept(ordertest.Confirm, func(confirm func() error) error {
				tt.during(w, confirm)
				return refused()
			}))
			r := w.record()
			if got.Verdict != order.Done || got.Status != tt.want || r.Status != tt.want || r.Failure != tt.failure {
				t.Errorf("got %+v, record status %s and failure %q, want %s, %s and %q",
					got, r.Status, r.Failure, order.Done, tt.want, tt.failure)
			}
		})
	}
}

func mustConfirm(w *world, confirm func() error) {
	w.Helper()
	if err := confirm(); err != nil {
		w.Errorf("confirm: %v", err)
	}
}

// An outcome that could not be recorded is not acknowledged, whether this attempt charged
// the order or an earlier one.
func TestAnOrderThatCouldNotBeFinishedIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	for card := range finalStatuses() {
		for _, takeover := range []bool{false, true} {
			for name, finish := range map[string]func(*world) ordertest.Interceptor{
				"loses the request":        always(ordertest.LoseRequestOf(ordertest.Finish)),
				"loses the response":       always(ordertest.LoseResponseOf(ordertest.Finish)),
				"loses the claim":          func(w *world) ordertest.Interceptor { return w.takeOverBefore(ordertest.Finish) },
				"meets a corrupt record":   always(failCall(ordertest.Finish, order.ErrCorrupt)),
				"is an invalid transition": always(failCall(ordertest.Finish, &order.TransitionError{})),
			} {
				w := newWorld(t, card)
				if takeover {
					w.crashAfter(ordertest.Confirm)
				}
				got := w.deliver(finish(w))
				if got.Verdict != order.Redeliver || got.Takeover != takeover || got.Err == nil {
					t.Errorf("%s, takeover %t, finish %s: got %+v, want a redelivery with an error",
						card, takeover, name, got)
				}
			}
		}
	}
}

// The lease is checked just before Confirm, because earlier calls may have used its time.
func TestAnIntentIsNotConfirmedLate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		slow   ordertest.Call
		before func(w *world)
	}{
		{ordertest.Begin, func(*world) {}},
		{ordertest.Prepare, func(*world) {}},
		{ordertest.Bind, func(*world) {}},
		{ordertest.Read, crashAfter(ordertest.Bind)},
	} {
		for left, want := range map[time.Duration]order.Reason{
			confirmTime: order.ReasonSettled, confirmTime - 1: order.ReasonOutOfTime,
		} {
			w := newWorld(t, ordertest.Pays)
			tt.before(w)
			got := w.deliver(intercept(tt.slow, func(do func() error) error {
				err := do()
				w.now = w.now.Add(w.lease - left)
				return err
			}))
			if confirmed := slices.Contains(w.calls, ordertest.Confirm); got.Reason != want ||
				confirmed != (want == order.ReasonSettled) {
				t.Errorf("%v left after %s: got %s, confirmed %t, want %s", left, tt.slow, got.Reason, confirmed, want)
			}
		}
	}
}

// LastError is the reason that the message and the log have, too.
func TestReleaseRecordsTheReasonOfTheResult(t *testing.T) {
	t.Parallel()
	for kind, want := range map[order.ErrorKind]order.Reason{
		order.KindUnavailable: order.ReasonUnavailable, order.KindUnknown: order.ReasonUnknown,
		order.KindReplayed: order.ReasonReplayed, order.KindMisconfigured: order.ReasonMisconfigured,
		order.KindKeyReused: order.ReasonKeyReused,
	} {
		w := newWorld(t, ordertest.Pays)
		got := w.deliver(failCall(ordertest.Confirm, &order.PaymentError{Kind: kind, Err: errors.New("no")}))
		if r := w.record(); got.Reason != want || r.LastError != string(want) || r.Owner != "" ||
			!r.Until.IsZero() {
			t.Errorf("%s: got reason %s and record %+v, want %s and a released record", kind, got.Reason, r, want)
		}
	}
}

// Every write has its own time, and not that of an earlier call.
func TestEachWriteHasItsOwnTime(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]ordertest.Interceptor{
		"a charge":          noFault,
		"a refused prepare": failCall(ordertest.Prepare, refused()),
		"a lost confirm":    failCall(ordertest.Confirm, ordertest.ErrConnection),
	} {
		w := newWorld(t, ordertest.Pays)
		w.deliver(func(c ordertest.Call, do func() error) error {
			now := w.now
			err := fault(c, do)
			if r := w.record(); c != ordertest.Prepare && c != ordertest.Confirm && !r.UpdatedAt.Equal(now) {
				t.Errorf("%s, %s: got UpdatedAt %v, want %v", name, c, r.UpdatedAt, now)
			}
			w.now = w.now.Add(time.Second)
			return err
		})
		if r := w.record(); r.Status != order.Open && !r.Events[0].At.Equal(r.UpdatedAt) {
			t.Errorf("%s: got event at %v, want UpdatedAt of the record, %v", name, r.Events[0].At, r.UpdatedAt)
		}
	}
}

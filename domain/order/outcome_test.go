package order_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// A refused confirmation says nothing about the intent, so whatever became of it counts,
// and not only a payment.
func TestARefusedConfirmBelievesWhateverBecameOfTheIntent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		card    ordertest.Card
		happens func(w *world, confirm func() error)
		want    order.Status
		failure string
	}{
		{"it was paid", ordertest.Pays, confirms, order.Paid, ""},
		{"it was declined", ordertest.Declines, confirms, order.Declined, "insufficient_funds"},
		{"its bank wants the customer", ordertest.NeedsAuthentication, confirms, order.ActionRequired, "authentication_required"},
		{"its bank takes days", ordertest.TakesDays, confirms, order.Pending, ""},
		{"it was canceled", ordertest.Pays, func(w *world, _ func() error) { w.bank.Cancel("pi_1") }, order.Canceled, ""},
		{"its customer paid another way", ordertest.Declines, func(w *world, confirm func() error) {
			confirms(w, confirm)
			w.bank.CustomerPays("pi_1")
		}, order.Paid, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.card)
			got := w.deliver(only(ordertest.Confirm, func(confirm func() error) error {
				tt.happens(w, confirm)
				return refused()
			}))
			r := w.record()
			if got.Verdict != order.Done || got.Status != tt.want || r.Status != tt.want || r.Failure != tt.failure {
				t.Errorf("got %s as %s (%v) and a record that is %s (%q), want it done as %s (%q)",
					got.Verdict, got.Status, got.Err, r.Status, r.Failure, tt.want, tt.failure)
			}
		})
	}
}

func confirms(w *world, confirm func() error) {
	w.Helper()
	if err := confirm(); err != nil {
		w.Errorf("confirm: %v", err)
	}
}

// What an attempt could not write down is not acknowledged, whether it made the charge or
// found it.
func TestNothingIsAcknowledgedThatCouldNotBeFinished(t *testing.T) {
	t.Parallel()
	for _, card := range []ordertest.Card{ordertest.Pays, ordertest.Declines, ordertest.NeedsAuthentication, ordertest.TakesDays} {
		for _, takeover := range []bool{false, true} {
			for name, finish := range map[string]func(*world) ordertest.Interceptor{
				"never arrives":          always(ordertest.LoseRequestOf(ordertest.Finish)),
				"loses its answer":       always(ordertest.LoseResponseOf(ordertest.Finish)),
				"is too late":            func(w *world) ordertest.Interceptor { return w.takenOverAt(ordertest.Finish) },
				"meets a damaged record": always(fails(ordertest.Finish, order.ErrCorrupt)),
				"is no transition":       always(fails(ordertest.Finish, &order.TransitionError{From: order.Paid, To: order.Declined})),
			} {
				w := newWorld(t, card)
				if takeover {
					w.dieAfter(ordertest.Confirm)
				}
				got := w.deliver(finish(w))
				if got.Verdict != order.Redeliver || got.Takeover != takeover || got.Err == nil {
					t.Errorf(
						"%s, takeover %t, a finish that %s: got %+v, want a redelivery with an error",
						card,
						takeover,
						name,
						got,
					)
				}
			}
		}
	}
}

// The lease is compared just before the confirmation: what went before may have used up
// the time.
func TestWhatTookTooLongIsNotConfirmed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		slow   ordertest.Call
		before func(w *world)
	}{
		{slow: ordertest.Begin},
		{slow: ordertest.Prepare},
		{slow: ordertest.Bind},
		{slow: ordertest.Read, before: func(w *world) { w.dieAfter(ordertest.Bind) }},
	} {
		for left, want := range map[time.Duration]order.Reason{confirmTime: order.ReasonSettled, confirmTime - 1: order.ReasonOutOfTime} {
			w := newWorld(t, ordertest.Pays)
			if tt.before != nil {
				tt.before(w)
			}
			got := w.deliver(only(tt.slow, func(do func() error) error {
				err := do()
				w.now = w.now.Add(w.lease - left)
				return err
			}))
			if confirmed := slices.Contains(w.calls, ordertest.Confirm); got.Reason != want ||
				confirmed != (want == order.ReasonSettled) {
				t.Errorf("%s leaves %v: got %s, confirmed: %t, want %s", tt.slow, left, got.Reason, confirmed, want)
			}
		}
	}
}

// An order that waits is due when there can be news; one that waits for nothing never is.
func TestEachStatusIsLookedAtAgainInItsOwnTime(t *testing.T) {
	t.Parallel()
	want := map[order.Status]time.Duration{
		order.Open:           15 * time.Minute,
		order.Pending:        time.Hour,
		order.ActionRequired: 24 * time.Hour,
	}
	for _, s := range order.Statuses() {
		got, waits := s.RecheckAfter()
		if _, should := want[s]; got != want[s] || waits != should {
			t.Errorf("%s: got %v, waits: %t, want %v, %t", s, got, waits, want[s], should)
		}
	}
	if open, _ := order.Open.RecheckAfter(); open < order.MaxLease {
		t.Errorf("an open order is due after %v, while a lease of %v may be running", open, order.MaxLease)
	}
}

// A row says why the last attempt gave up, in the word that the message gets too.
func TestTheRecordNotesTheReasonOfTheResult(t *testing.T) {
	t.Parallel()
	for trouble, want := range map[order.ErrorKind]order.Reason{
		order.Unavailable: order.ReasonUnavailable, order.Unknown: order.ReasonUnknown, order.Replayed: order.ReasonReplayed,
		order.Misconfigured: order.ReasonMisconfigured, order.KeyReused: order.ReasonKeyReused,
	} {
		w := newWorld(t, ordertest.Pays)
		got := w.deliver(fails(ordertest.Confirm, &order.PaymentError{Kind: trouble, Err: errors.New("no")}))
		if r := w.record(); got.Reason != want || r.LastError != string(want) || r.Owner != "" ||
			!r.Until.IsZero() {
			t.Errorf(
				"%s: got %s and a record that says %q, held by %q until %v, want %s and nobody", trouble, got.Reason,
				r.LastError, r.Owner, r.Until, want,
			)
		}
	}
}

package ordertest

import (
	"errors"
	"time"

	"orderonce/domain/order"
)

func recordsPromises() []promise {
	return []promise{
		{"load of an unknown order returns ErrNotFound", storeTest.wantNoRecord},
		{"load returns a copy", storeTest.loadIsACopy},
		{"settle adds its events in order", storeTest.settleAdds},
		{"settle as paid clears the failure", storeTest.settleClearsFailure},
		{"settle of a refused order records a late payment", storeTest.settleRefused},
		{"settle cancels an order without an intent, and no attempt can bind one", storeTest.settleUnbound},
		{"settle of an order without an intent as paid returns ErrStale", storeTest.settleUnboundAsPaid},
		{"settle ends the claim of a running attempt", storeTest.settleDuringAttempt},
		{"settle with the recorded outcome changes nothing", storeTest.settleAgain},
		{"settle of a record that changed returns ErrStale", storeTest.settleStale},
		{"settle with another intent returns ErrStale", storeTest.settleOtherIntent},
		{"settle with an invalid transition returns a TransitionError", storeTest.settleInvalidTransition},
		{"settle of an unknown order creates no record", storeTest.settleUnknown},
	}
}

func (x storeTest) loadIsACopy() {
	x.mustFinish(order.Paid)
	x.wantUnchanged(func() {
		r, err := x.Load(x.Context(), x.order.ID())
		x.must(err)
		r.Events[0].To = order.Canceled
	})
}

// wantSettle settles the current record and checks the new one.
func (x storeTest) wantSettle(o order.Outcome, now time.Time) {
	x.Helper()
	r := x.mustLoad()
	x.must(x.Settle(x.Context(), r, o, now))
	x.wantRecord(recordAfter(r, o, now))
}

func (x storeTest) settleAdds() {
	x.mustFinish(order.Pending)
	x.wantSettle(
		order.Outcome{Status: order.Declined, Intent: "pi_1", Failure: "insufficient_funds"}, at(time.Hour),
	)
	x.wantSettle(outcome(order.Paid, "pi_1"), at(2*time.Hour))
}

func (x storeTest) settleClearsFailure() {
	c := x.mustBind("pi_1")
	wants := order.Outcome{Status: order.ActionRequired, Intent: "pi_1", Failure: "authentication_required"}
	x.must(x.Finish(x.Context(), c, wants, at(time.Second)))
	x.wantSettle(outcome(order.Paid, "pi_1"), at(time.Hour))
}

func (x storeTest) settleRefused() {
	x.mustFinish(order.Refused)
	x.wantSettle(outcome(order.Paid, "pi_1"), at(time.Hour))
}

func (x storeTest) settleUnbound() {
	canceled := order.Outcome{Status: order.Canceled, Failure: order.CanceledByOperator}
	running := x.mustBegin(lease("first", at(0)))
	x.wantSettle(canceled, at(time.Second))
	x.wantUnchanged(func() {
		x.wantError(x.Bind(x.Context(), running, intent("pi_1"), at(2*time.Second)), order.ErrClaimLost)
	})
	x.wantClaimLost(running)
	_, err := x.Begin(x.Context(), x.order, lease("second", at(time.Hour)))
	if settled, is := errors.AsType[*order.SettledError](err); !is || settled.Record.Status != order.Canceled {
		x.Errorf("begin of a canceled order: got %v, want a SettledError", err)
	}

	bound := x.with(Order(x.order.ID() + "-bound"))
	claim := bound.mustBegin(lease("first", at(0)))
	loaded := bound.mustLoad()
	bound.must(bound.Bind(bound.Context(), claim, intent("pi_1"), at(time.Second)))
	bound.wantUnchanged(func() {
		bound.wantError(bound.Settle(bound.Context(), loaded, canceled, at(time.Minute)), order.ErrStale)
	})
}

func (x storeTest) settleUnboundAsPaid() {
	x.mustBegin(lease("first", at(0)))
	x.wantUnchanged(func() {
		x.wantError(x.Settle(x.Context(), x.mustLoad(), outcome(order.Paid, ""), at(time.Hour)), order.ErrStale)
	})
}

func (x storeTest) settleDuringAttempt() {
	c := x.mustBind("pi_1")
	x.wantSettle(outcome(order.Paid, "pi_1"), at(2*time.Second))
	x.wantUnchanged(func() {
		x.must(x.Finish(x.Context(), c, outcome(order.Paid, "pi_1"), at(3*time.Second)))
	})
	x.wantClaimLost(c)
}

func (x storeTest) settleAgain() {
	x.mustBind("pi_1")
	loaded, paid := x.mustLoad(), outcome(order.Paid, "pi_1")
	x.wantSettle(paid, at(time.Minute))
	x.wantUnchanged(func() {
		x.must(x.Settle(x.Context(), loaded, paid, at(time.Hour)))
		x.must(x.Settle(x.Context(), x.mustLoad(), paid, at(time.Hour)))
	})
}

func (x storeTest) settleStale() {
	x.mustFinish(order.Pending)
	loaded := x.mustLoad()
	for name, age := range map[string]func(*order.Record){
		"status": func(r *order.Record) { r.Status = order.ActionRequired },
		"seq":    func(r *order.Record) { r.Seq++ },
		"intent": func(r *order.Record) { r.Intent = "pi_2" },
	} {
		seen := loaded
		age(&seen)
		x.wantUnchanged(func() {
			err := x.Settle(x.Context(), seen, outcome(order.Paid, "pi_1"), at(time.Hour))
			if x.wantError(err, order.ErrStale); x.Failed() {
				x.Fatalf("with another %s", name)
			}
		})
	}
}

func (x storeTest) settleOtherIntent() {
	x.mustFinish(order.Pending)
	x.wantUnchanged(func() {
		x.wantError(x.Settle(x.Context(), x.mustLoad(), outcome(order.Paid, "pi_2"), at(time.Hour)), order.ErrStale)
	})
}

func (x storeTest) settleInvalidTransition() {
	x.mustFinish(order.Declined)
	for _, s := range []order.Status{order.Open, order.Pending, order.Refused} {
		x.wantUnchanged(func() {
			err := x.Settle(x.Context(), x.mustLoad(), outcome(s, "pi_1"), at(time.Hour))
			x.wantTransitionError(err, order.TransitionError{From: order.Declined, To: s})
		})
	}
}

func (x storeTest) settleUnknown() {
	seen := order.Record{OrderID: x.order.ID(), Status: order.Pending, Intent: "pi_1", Seq: 1}
	x.wantError(x.Settle(x.Context(), seen, outcome(order.Paid, "pi_1"), at(0)), order.ErrStale)
	x.wantNoRecord()
}

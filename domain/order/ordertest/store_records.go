package ordertest

import (
	"time"

	"orderonce/domain/order"
)

func recordsPromises() []promise {
	return []promise{
		{"load of an unknown order returns ErrNotFound", trial.absent},
		{"load returns a copy", trial.loadIsACopy},
		{"settle adds its events in order", trial.settleAdds},
		{"settle as paid clears the failure", trial.settleClearsFailure},
		{"settle of a refused order records a late payment", trial.settleRefused},
		{"settle ends the claim of a running attempt", trial.settleUnderWorker},
		{"settle with the recorded outcome changes nothing", trial.settleAgain},
		{"settle of a record that changed returns ErrStale", trial.settleStale},
		{"settle with another intent returns ErrStale", trial.settleOtherIntent},
		{"settle with an invalid transition returns a TransitionError", trial.settleUndrawn},
		{"settle of an unknown order creates no record", trial.settleUnknown},
	}
}

func (x trial) loadIsACopy() {
	x.finished(order.Paid)
	x.untouched(func() {
		r, err := x.Load(x.Context(), x.order.ID())
		x.ok(err)
		r.Events[0].To = order.Canceled
	})
}

// settles settles the record as it is and checks what became of it.
func (x trial) settles(o order.Outcome, now time.Time) {
	x.Helper()
	r := x.load()
	x.ok(x.Settle(x.Context(), r, o, now))
	x.changed(after(r, o, now))
}

func (x trial) settleAdds() {
	x.finished(order.Pending)
	x.settles(
		order.Outcome{Status: order.Declined, Intent: "pi_1", Failure: "insufficient_funds"},
		at(time.Hour),
	)
	x.settles(order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(2*time.Hour))
}

func (x trial) settleClearsFailure() {
	c := x.bound("pi_1")
	wants := order.Outcome{Status: order.ActionRequired, Intent: "pi_1", Failure: "authentication_required"}
	x.ok(x.Finish(x.Context(), c, wants, at(time.Second)))
	x.settles(order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(time.Hour))
}

func (x trial) settleRefused() {
	x.finished(order.StatusRefused)
	x.settles(order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(time.Hour))
}

func (x trial) settleUnderWorker() {
	c := x.bound("pi_1")
	x.settles(order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(2*time.Second))
	x.untouched(func() {
		x.ok(x.Finish(x.Context(), c, order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(3*time.Second)))
	})
	x.fenced(c)
}

func (x trial) settleAgain() {
	x.bound("pi_1")
	loaded, paid := x.load(), order.Outcome{Status: order.Paid, Intent: "pi_1"}
	x.settles(paid, at(time.Minute))
	x.untouched(func() {
		x.ok(x.Settle(x.Context(), loaded, paid, at(time.Hour)))
		x.ok(x.Settle(x.Context(), x.load(), paid, at(time.Hour)))
	})
}

func (x trial) settleStale() {
	x.finished(order.Pending)
	loaded := x.load()
	for name, age := range map[string]func(*order.Record){
		"status": func(r *order.Record) { r.Status = order.ActionRequired },
		"seq":    func(r *order.Record) { r.Seq++ },
		"intent": func(r *order.Record) { r.Intent = "pi_2" },
	} {
		seen := loaded
		age(&seen)
		x.untouched(func() {
			err := x.Settle(x.Context(), seen, order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(time.Hour))
			if x.is(err, order.ErrStale); x.Failed() {
				x.Fatalf("with another %s", name)
			}
		})
	}
}

func (x trial) settleOtherIntent() {
	x.finished(order.Pending)
	x.untouched(func() {
		x.is(
			x.Settle(x.Context(), x.load(), order.Outcome{Status: order.Paid, Intent: "pi_2"}, at(time.Hour)),
			order.ErrStale,
		)
	})
}

func (x trial) settleUndrawn() {
	x.finished(order.Declined)
	for _, s := range []order.Status{order.Open, order.Pending, order.Canceled, order.StatusRefused} {
		x.untouched(func() {
			err := x.Settle(x.Context(), x.load(), order.Outcome{Status: s, Intent: "pi_1"}, at(time.Hour))
			x.undrawn(err, order.TransitionError{From: order.Declined, To: s})
		})
	}
}

func (x trial) settleUnknown() {
	seen := order.Record{OrderID: x.order.ID(), Status: order.Pending, Intent: "pi_1", Seq: 1}
	x.is(x.Settle(x.Context(), seen, order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(0)), order.ErrStale)
	x.absent()
}

package ordertest

import (
	"errors"
	"time"

	"orderonce/domain/order"
)

func recreatePromises() []promise {
	return []promise{
		{"recreate writes an open record with the intent bound", trial.recreateLost},
		{"a recreated order is taken over with its intent and its customer", trial.recreateIsTakenOver},
		{"recreate binds the intent to an open record without one", trial.recreateUnbound},
		{"recreate of the bound intent changes nothing", trial.recreateBound},
		{"recreate over another bound intent returns a MismatchError", trial.recreateOtherIntent},
		{"recreate with different content returns ErrConflict", trial.recreateOtherContent},
		{"recreate with an unknown fingerprint version returns ErrUnknownVersion", trial.recreateNewerRelease},
		{"recreate during a running lease returns an InProgressError", trial.recreateLeased},
		{"recreate ends the claim of an expired lease", trial.recreateFences},
	}
}

// lost is the record of the trial's order as it can be read off its intent.
func (x trial) lost() order.Record {
	return order.Record{
		OrderID: x.order.ID(), Total: x.order.Total(), Fingerprint: x.order.Fingerprint(),
		Intent: "pi_1", Mode: order.TestMode,
	}
}

func (x trial) recreate(r order.Record, now time.Time) error {
	return x.Recreate(x.Context(), r, now)
}

func (x trial) recreateLost() {
	now := at(time.Hour)
	x.ok(x.recreate(x.lost(), now))
	x.changed(order.Record{
		OrderID: x.order.ID(), Total: x.order.Total(), Fingerprint: x.order.Fingerprint(),
		Status: order.Open, Attempt: 1, Intent: "pi_1", Mode: order.TestMode,
		CreatedAt: now, UpdatedAt: now, DueAt: dueAfter(order.Open, now),
	})
	r := x.load()
	paid := order.Outcome{Status: order.Paid, Intent: "pi_1"}
	x.ok(x.Settle(x.Context(), r, paid, at(2*time.Hour)))
	x.changed(after(r, paid, at(2*time.Hour)))
}

func (x trial) recreateIsTakenOver() {
	x.ok(x.recreate(x.lost(), at(0)))
	got := x.begin(lease("first", at(time.Second)))
	if got.Attempt != 2 || got.Intent != "pi_1" {
		x.Errorf("got claim %+v, want attempt 2 with pi_1", got)
	}
	if r := x.load(); r.CustomerID != x.order.CustomerID() {
		x.Errorf("got customer %q, want %q", r.CustomerID, x.order.CustomerID())
	}
}

func (x trial) recreateUnbound() {
	c := x.begin(lease("first", at(0)))
	x.ok(x.Release(x.Context(), c, order.ReasonRecordLost, at(time.Second)))
	want := x.load()
	now := at(time.Minute)
	x.ok(x.recreate(x.lost(), now))
	want.Intent, want.Mode, want.UpdatedAt, want.DueAt = "pi_1", order.TestMode, now, dueAfter(order.Open, now)
	want.Until = x.load().Until // the store's choice: nobody holds it
	x.changed(want)
}

func (x trial) recreateBound() {
	x.bound("pi_1")
	x.untouched(func() { x.ok(x.recreate(x.lost(), at(time.Second))) })
	paid := x.with(Order(x.order.ID() + "-paid"))
	paid.finished(order.Paid)
	paid.untouched(func() { paid.ok(paid.recreate(paid.lost(), at(time.Hour))) })
}

func (x trial) recreateOtherIntent() {
	for name, put := range map[string]func(trial){
		"-open": func(x trial) { x.bound("pi_2") },
		"-paid": func(x trial) { x.settledWith("pi_2") },
	} {
		x := x.with(Order(x.order.ID() + order.ID(name)))
		put(x)
		x.untouched(func() {
			err := x.recreate(x.lost(), at(time.Hour))
			if mismatch, ok := errors.AsType[*order.MismatchError](err); !ok || mismatch.Want != "pi_2" {
				x.Errorf("%s: got %v, want a MismatchError that wants pi_2", name, err)
			}
		})
	}
}

// settledWith is an order that a worker settled with that intent.
func (x trial) settledWith(id order.IntentID) {
	x.Helper()
	c := x.bound(id)
	x.ok(x.Finish(x.Context(), c, order.Outcome{Status: order.Paid, Intent: id}, at(time.Second)))
}

func (x trial) recreateOtherContent() {
	x.begin(lease("first", at(0)))
	r := x.lost()
	r.Fingerprint = otherContent(x.order).Fingerprint()
	x.untouched(func() { x.is(x.recreate(r, at(time.Hour)), order.ErrConflict) })
}

func (x trial) recreateNewerRelease() {
	x.begin(lease("first", at(0)))
	r := x.lost()
	r.Fingerprint = "v999:of a newer release"
	x.untouched(func() { x.is(x.recreate(r, at(time.Hour)), order.ErrUnknownVersion) })
}

func (x trial) recreateLeased() {
	c := x.begin(lease("first", at(0)))
	x.untouched(func() {
		err := x.recreate(x.lost(), c.Lease.Until)
		if held, ok := errors.AsType[*order.InProgressError](err); !ok || !held.Until.Equal(c.Lease.Until) {
			x.Errorf("got %v, want an InProgressError until %v", err, c.Lease.Until)
		}
	})
}

func (x trial) recreateFences() {
	c := x.begin(lease("first", at(0)))
	x.ok(x.recreate(x.lost(), c.Lease.Until.Add(time.Millisecond)))
	x.fenced(c)
}

package ordertest

import (
	"errors"
	"time"

	"orderonce/domain/order"
)

func recreatePromises() []promise {
	return []promise{
		{"recreate writes an open record with the intent bound", storeTest.recreateLost},
		{"a recreated order is taken over with its intent and its customer", storeTest.recreateIsTakenOver},
		{"recreate binds the intent to an open record without one", storeTest.recreateUnbound},
		{"recreate of the bound intent changes nothing", storeTest.recreateBound},
		{"recreate over another bound intent returns a MismatchError", storeTest.recreateOtherIntent},
		{"recreate with different content returns ErrConflict", storeTest.recreateDifferentContent},
		{
			"recreate with an unknown fingerprint version returns ErrUnknownVersion",
			storeTest.recreateUnknownVersion,
		},
		{"recreate during a running lease returns an InProgressError", storeTest.recreateRunningLease},
		{"recreate ends the claim of an expired lease", storeTest.recreateExpiredLease},
		{"recreate ignores a lease longer than a function can run", storeTest.recreateLongLease},
	}
}

// lost returns the part of the order's record that its intent determines.
func (x storeTest) lost() order.Record {
	return order.Record{
		OrderID: x.order.ID(), Total: x.order.Total(), Fingerprint: x.order.Fingerprint(),
		Intent: "pi_1", Mode: order.TestMode,
	}
}

func (x storeTest) recreate(r order.Record, now time.Time) error {
	return x.Recreate(x.Context(), r, now)
}

func (x storeTest) recreateLost() {
	now := at(time.Hour)
	x.must(x.recreate(x.lost(), now))
	x.wantRecord(order.Record{
		OrderID: x.order.ID(), Total: x.order.Total(), Fingerprint: x.order.Fingerprint(),
		Status: order.Open, Attempt: 1, Intent: "pi_1", Mode: order.TestMode,
		CreatedAt: now, UpdatedAt: now, DueAt: dueAfter(order.Open, now),
	})
	r := x.mustLoad()
	paid := outcome(order.Paid, "pi_1")
	x.must(x.Settle(x.Context(), r, paid, at(2*time.Hour)))
	x.wantRecord(recordAfter(r, paid, at(2*time.Hour)))
}

func (x storeTest) recreateIsTakenOver() {
	x.must(x.recreate(x.lost(), at(0)))
	got := x.mustBegin(lease("first", at(time.Second)))
	if got.Attempt != 2 || got.Intent != "pi_1" {
		x.Errorf("got claim %+v, want attempt 2 and intent pi_1", got)
	}
	if r := x.mustLoad(); r.CustomerID != x.order.CustomerID() {
		x.Errorf("got customer %q, want %q", r.CustomerID, x.order.CustomerID())
	}
}

func (x storeTest) recreateUnbound() {
	c := x.mustBegin(lease("first", at(0)))
	c.Suspect = "pi_1"
	x.must(x.Release(x.Context(), c, order.ReasonRecordLost, at(time.Second)))
	want := x.mustLoad()
	now := at(time.Minute)
	x.must(x.recreate(x.lost(), now))
	want.Suspect = ""
	want.Intent, want.Mode, want.UpdatedAt, want.DueAt = "pi_1", order.TestMode, now, dueAfter(order.Open, now)
	want.Until = x.mustLoad().Until // not specified without an owner
	x.wantRecord(want)
}

func (x storeTest) recreateBound() {
	x.mustBind("pi_1")
	x.wantUnchanged(func() { x.must(x.recreate(x.lost(), at(time.Second))) })
	paid := x.with(Order(x.order.ID() + "-paid"))
	paid.mustFinish(order.Paid)
	paid.wantUnchanged(func() { paid.must(paid.recreate(paid.lost(), at(time.Hour))) })
}

func (x storeTest) recreateOtherIntent() {
	for name, put := range map[string]func(storeTest){
		"-open": func(x storeTest) { x.mustBind("pi_2") },
		"-paid": func(x storeTest) { x.mustSettleWith("pi_2") },
	} {
		x := x.with(Order(x.order.ID() + order.ID(name)))
		put(x)
		x.wantUnchanged(func() {
			err := x.recreate(x.lost(), at(time.Hour))
			if mismatch, ok := errors.AsType[*order.MismatchError](err); !ok || mismatch.Want != "pi_2" {
				x.Errorf("%s: got %v, want a MismatchError that wants pi_2", name, err)
			}
		})
	}
}

// mustSettleWith claims the order and finishes it as paid with this intent.
func (x storeTest) mustSettleWith(id order.IntentID) {
	x.Helper()
	c := x.mustBind(id)
	x.must(x.Finish(x.Context(), c, outcome(order.Paid, id), at(time.Second)))
}

func (x storeTest) recreateDifferentContent() {
	x.mustBegin(lease("first", at(0)))
	r := x.lost()
	r.Fingerprint = differentContent(x.order).Fingerprint()
	x.wantUnchanged(func() { x.wantError(x.recreate(r, at(time.Hour)), order.ErrConflict) })
}

func (x storeTest) recreateUnknownVersion() {
	x.mustBegin(lease("first", at(0)))
	r := x.lost()
	r.Fingerprint = "v999:of a newer release"
	x.wantUnchanged(func() { x.wantError(x.recreate(r, at(time.Hour)), order.ErrUnknownVersion) })
}

func (x storeTest) recreateRunningLease() {
	until := at(0).Add(maxRun + maxSkew)
	x.mustBegin(order.Lease{Owner: "first", From: at(0), Until: until})
	for _, now := range []time.Time{at(0), until} { // the longest that is left of a lease, and the shortest
		x.wantUnchanged(func() {
			err := x.recreate(x.lost(), now)
			if held, ok := errors.AsType[*order.InProgressError](err); !ok || !held.Until.Equal(until) {
				x.Errorf("at %v: got %v, want an InProgressError until %v", now, err, until)
			}
		})
	}
}

func (x storeTest) recreateLongLease() {
	years := order.Lease{Owner: "broken clock", From: at(0), Until: at(20_000 * time.Hour)}
	c := x.mustBegin(years)
	x.must(x.recreate(x.lost(), years.Until.Add(-maxRun-maxSkew-time.Millisecond)))
	x.wantClaimLost(c)
}

func (x storeTest) recreateExpiredLease() {
	c := x.mustBegin(lease("first", at(0)))
	x.must(x.recreate(x.lost(), c.Lease.Until.Add(time.Millisecond)))
	x.wantClaimLost(c)
}

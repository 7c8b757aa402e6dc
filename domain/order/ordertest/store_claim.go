package ordertest

import (
	"errors"
	"slices"
	"time"

	"orderonce/domain/order"
)

func bindPromises() []promise {
	return []promise{
		{"bind writes the intent", storeTest.bindWrites},
		{"bind removes the intent that was found before", storeTest.bindRemovesSuspect},
		{"bind of the same intent again succeeds", storeTest.bindAgain},
		{"bind of another intent returns ErrClaimLost", storeTest.bindOther},
		{"bind after the claim was lost changes nothing", storeTest.bindClaimLost},
		{"bind of a settled order returns ErrClaimLost", storeTest.bindSettled},
		{"bind of an unknown order creates no record", storeTest.bindUnknown},
	}
}

func (x storeTest) bindWrites() {
	c := x.mustBegin(lease("first", at(0)))
	want := x.mustLoad()
	x.must(x.Bind(x.Context(), c, intent("pi_1"), at(time.Second)))
	want.Intent, want.Mode, want.UpdatedAt = "pi_1", order.TestMode, at(time.Second)
	want.DueAt = x.mustLoad().DueAt // not specified
	x.wantRecord(want)
}

// mustFind releases a claim of an attempt that found pi_1, and returns the next claim.
func (x storeTest) mustFind() order.Claim {
	x.Helper()
	c := x.mustBegin(lease("first", at(0)))
	c.Suspect = "pi_1"
	x.must(x.Release(x.Context(), c, order.ReasonRecordLost, at(time.Second)))
	return x.mustBegin(lease("second", at(time.Minute)))
}

func (x storeTest) bindRemovesSuspect() {
	c := x.mustFind()
	x.must(x.Bind(x.Context(), c, intent("pi_1"), at(time.Minute)))
	if r := x.mustLoad(); r.Intent != "pi_1" || r.Suspect != "" {
		x.Errorf("got intent %q and suspect %q, want pi_1 and none", r.Intent, r.Suspect)
	}
}

func (x storeTest) bindAgain() {
	c := x.mustBind("pi_1")
	x.must(x.Bind(x.Context(), c, intent("pi_1"), at(time.Second)))
	if r := x.mustLoad(); r.Intent != "pi_1" || r.Owner != "first" || r.Attempt != 1 {
		x.Errorf("got record %+v, want pi_1 and the first owner at attempt 1", r)
	}
}

func (x storeTest) bindOther() {
	c := x.mustBind("pi_1")
	x.wantUnchanged(func() {
		x.wantError(x.Bind(x.Context(), c, intent("pi_2"), at(time.Minute)), order.ErrClaimLost)
	})
}

func (x storeTest) bindClaimLost() {
	first := x.mustBegin(lease("first", at(0)))
	second := x.mustBegin(lease("second", at(time.Hour)))
	x.wantUnchanged(func() {
		x.wantError(x.Bind(x.Context(), first, intent("pi_1"), at(time.Hour)), order.ErrClaimLost)
	})
	x.must(x.Bind(x.Context(), second, intent("pi_2"), at(time.Hour)))
	x.wantUnchanged(func() {
		x.wantError(x.Bind(x.Context(), first, intent("pi_2"), at(time.Hour)), order.ErrClaimLost)
	})
}

func (x storeTest) bindSettled() {
	c := x.mustFinish(order.Paid)
	x.wantUnchanged(func() {
		x.wantError(x.Bind(x.Context(), c, intent("pi_2"), at(time.Minute)), order.ErrClaimLost)
	})
}

// unknownClaim returns a claim on an order that has no record.
func (x storeTest) unknownClaim() order.Claim {
	return order.Claim{Order: x.order, Lease: lease("first", at(0)), Attempt: 1, Intent: "pi_1"}
}

func (x storeTest) bindUnknown() {
	x.wantError(x.Bind(x.Context(), x.unknownClaim(), intent("pi_1"), at(0)), order.ErrClaimLost)
	x.wantNoRecord()
}

func finishPromises() []promise {
	return []promise{
		{"finish settles with one event and ends the claim", storeTest.finishSettles},
		{"finish again with the same outcome changes nothing", storeTest.finishAgain},
		{"finish records a refusal without an intent", storeTest.finishRefused},
		{"finish with another outcome returns ErrClaimLost", storeTest.finishOther},
		{"finish with an invalid transition returns a TransitionError", storeTest.finishInvalidTransition},
		{"finish with an intent that is not bound returns ErrClaimLost", storeTest.finishUnbound},
		{"finish after the claim was lost changes nothing", storeTest.finishClaimLost},
		{"finish after the claim was lost succeeds if the outcome is recorded", storeTest.finishRecorded},
		{"finish of an unknown order creates no record", storeTest.finishUnknown},
	}
}

func (x storeTest) finishSettles() {
	for _, s := range order.Open.Next() {
		x := x.with(Order(x.order.ID() + order.ID(s)))
		c, now := x.mustBind("pi_1"), at(2*time.Second)
		want := x.mustLoad()
		o := outcome(s, "pi_1")
		if s != order.Paid && s != order.Pending {
			o.Failure = "code_of_" + string(s)
		}
		x.must(x.Finish(x.Context(), c, o, now))
		x.wantRecord(recordAfter(want, o, now))
	}
}

// recordAfter returns the record r after the outcome o.
func recordAfter(r order.Record, o order.Outcome, now time.Time) order.Record {
	r.Seq++
	r.Events = append(slices.Clone(r.Events), order.Event{
		Seq: r.Seq, From: r.Status, To: o.Status, Intent: o.Intent, Failure: o.Failure, At: now,
	})
	r.Status, r.Failure, r.Owner, r.Until = o.Status, o.Failure, "", time.Time{}
	r.UpdatedAt, r.DueAt = now, dueAfter(o.Status, now)
	return r
}

func (x storeTest) finishAgain() {
	c := x.mustFinish(order.Declined)
	same := outcome(order.Declined, "pi_1")
	x.wantUnchanged(func() { x.must(x.Finish(x.Context(), c, same, at(time.Minute))) })
}

func (x storeTest) finishRefused() {
	c, want := x.mustBegin(lease("first", at(0))), x.mustLoad()
	refused := order.Outcome{Status: order.Refused, Failure: "resource_missing"}
	x.must(x.Finish(x.Context(), c, refused, at(time.Second)))
	x.wantRecord(recordAfter(want, refused, at(time.Second)))

	x = x.with(Order(x.order.ID() + "-paid"))
	c = x.mustBegin(lease("first", at(0)))
	x.wantUnchanged(func() {
		x.wantError(
			x.Finish(x.Context(), c, order.Outcome{Status: order.Paid}, at(time.Second)), order.ErrClaimLost,
		)
	})
}

func (x storeTest) finishOther() {
	c := x.mustFinish(order.Declined)
	x.wantUnchanged(func() {
		x.wantError(x.Finish(x.Context(), c, outcome(order.Paid, "pi_1"), at(time.Minute)), order.ErrClaimLost)
		x.wantError(x.Finish(x.Context(), c, outcome(order.Declined, "pi_2"), at(time.Minute)), order.ErrClaimLost)
	})
}

func (x storeTest) finishInvalidTransition() {
	c := x.mustBind("pi_1")
	for _, s := range []order.Status{order.Open, "lost"} {
		x.wantUnchanged(func() {
			err := x.Finish(x.Context(), c, outcome(s, "pi_1"), at(time.Second))
			x.wantTransitionError(err, order.TransitionError{From: order.Open, To: s})
		})
	}
}

func (x storeTest) wantTransitionError(err error, want order.TransitionError) {
	x.Helper()
	var got *order.TransitionError
	if !errors.As(err, &got) || *got != want {
		x.Errorf("got %v, want %v", err, &want)
	}
}

func (x storeTest) finishUnbound() {
	c := x.mustBegin(lease("first", at(0)))
	paid := outcome(order.Paid, "pi_1")
	x.wantUnchanged(func() { x.wantError(x.Finish(x.Context(), c, paid, at(time.Second)), order.ErrClaimLost) })
	x.must(x.Bind(x.Context(), c, intent("pi_2"), at(time.Second)))
	x.wantUnchanged(func() { x.wantError(x.Finish(x.Context(), c, paid, at(time.Second)), order.ErrClaimLost) })
}

func (x storeTest) finishClaimLost() {
	first, second := x.mustTakeOver()
	paid := outcome(order.Paid, "pi_1")
	x.wantUnchanged(func() {
		x.wantError(x.Finish(x.Context(), first, paid, at(time.Hour)), order.ErrClaimLost)
	})
	x.must(x.Finish(x.Context(), second, paid, at(time.Hour)))
}

func (x storeTest) finishRecorded() {
	first, second := x.mustTakeOver()
	paid := outcome(order.Paid, "pi_1")
	x.must(x.Finish(x.Context(), second, paid, at(time.Hour)))
	x.wantUnchanged(func() {
		x.must(x.Finish(x.Context(), first, paid, at(2*time.Hour)))
		x.wantError(
			x.Finish(x.Context(), first, outcome(order.Declined, "pi_1"), at(2*time.Hour)), order.ErrClaimLost,
		)
	})
}

func (x storeTest) finishUnknown() {
	x.wantError(x.Finish(x.Context(), x.unknownClaim(), outcome(order.Paid, "pi_1"), at(0)), order.ErrClaimLost)
	x.wantNoRecord()
}

func releasePromises() []promise {
	return []promise{
		{"release lets the next attempt begin at once", storeTest.releaseFrees},
		{"an intent that was found is in every later claim", storeTest.releaseSuspect},
		{"a released claim is lost", storeTest.releaseLosesClaim},
		{"release after the claim was lost changes nothing", storeTest.releaseClaimLost},
		{"release of a settled order changes nothing", storeTest.releaseSettled},
		{"release of an unknown order creates no record", storeTest.releaseUnknown},
	}
}

func (x storeTest) releaseFrees() {
	for name, now := range map[string]time.Time{
		"-same": at(time.Second), "-later": at(time.Minute), "-behind": at(-time.Hour),
	} {
		x := x.with(Order(x.order.ID() + order.ID(name)))
		c := x.mustBind("pi_1")
		want := x.mustLoad()
		x.must(x.Release(x.Context(), c, order.ReasonUnavailable, at(time.Second)))
		got := x.mustLoad()
		want.Owner, want.LastError, want.UpdatedAt = "", string(order.ReasonUnavailable), at(time.Second)
		want.Until, want.DueAt = got.Until, got.DueAt // not specified without an owner
		x.wantRecord(want)
		if next := x.mustBegin(lease("second", now)); next.Attempt != 2 || next.Intent != "pi_1" {
			x.Errorf("begin %s: got %+v, want attempt 2 with pi_1", name, next)
		}
	}
}

func (x storeTest) releaseSuspect() {
	second := x.mustFind()
	second.Suspect = "" // of a release that does not carry it
	x.must(x.Release(x.Context(), second, order.ReasonUnavailable, at(time.Minute)))
	third := x.mustBegin(lease("third", at(time.Hour)))
	if r := x.mustLoad(); r.Suspect != "pi_1" || third.Suspect != "pi_1" || third.Intent != "" {
		x.Errorf("got suspect %q in the record and claim %+v, want pi_1 in both", r.Suspect, third)
	}
}

func (x storeTest) releaseLosesClaim() {
	c := x.mustBind("pi_1")
	x.must(x.Release(x.Context(), c, order.ReasonUnknown, at(time.Second)))
	x.wantClaimLost(c)
}

// wantClaimLost checks that every write with c returns ErrClaimLost and changes nothing.
func (x storeTest) wantClaimLost(c order.Claim) {
	x.Helper()
	ctx, now := x.Context(), at(time.Hour)
	x.wantUnchanged(func() {
		x.wantError(x.Bind(ctx, c, intent("pi_1"), now), order.ErrClaimLost)
		x.wantError(x.Finish(ctx, c, outcome(order.Canceled, "pi_1"), now), order.ErrClaimLost)
		x.wantError(x.Release(ctx, c, order.ReasonStore, now), order.ErrClaimLost)
	})
}

func (x storeTest) releaseClaimLost() {
	first, second := x.mustTakeOver()
	x.wantClaimLost(first)
	x.must(x.Release(x.Context(), second, order.ReasonUnknown, at(time.Hour)))
}

func (x storeTest) releaseSettled() { x.wantClaimLost(x.mustFinish(order.Paid)) }

func (x storeTest) releaseUnknown() {
	x.wantError(x.Release(x.Context(), x.unknownClaim(), order.ReasonStore, at(0)), order.ErrClaimLost)
	x.wantNoRecord()
}

package ordertest

import (
	"errors"
	"slices"
	"time"

	"orderonce/domain/order"
)

func bindPromises() []promise {
	return []promise{
		{"bind writes the intent", trial.bindWrites},
		{"bind of the same intent again succeeds", trial.bindAgain},
		{"bind of another intent returns ErrClaimLost", trial.bindOther},
		{"bind after the claim was lost changes nothing", trial.bindFenced},
		{"bind of a settled order returns ErrClaimLost", trial.bindSettled},
		{"bind of an unknown order creates no record", trial.bindUnknown},
	}
}

func (x trial) bindWrites() {
	c := x.begin(lease("first", at(0)))
	want := x.load()
	x.ok(x.Bind(x.Context(), c, intent("pi_1"), at(time.Second)))
	want.Intent, want.Mode, want.UpdatedAt = "pi_1", order.TestMode, at(time.Second)
	want.DueAt = x.load().DueAt // the store's choice
	x.changed(want)
}

func (x trial) bindAgain() {
	c := x.bound("pi_1")
	x.ok(x.Bind(x.Context(), c, intent("pi_1"), at(time.Second)))
	if r := x.load(); r.Intent != "pi_1" || r.Owner != "first" || r.Attempt != 1 {
		x.Errorf("got %+v, want it with pi_1, still the first owner's", r)
	}
}

func (x trial) bindOther() {
	c := x.bound("pi_1")
	x.untouched(func() { x.is(x.Bind(x.Context(), c, intent("pi_2"), at(time.Minute)), order.ErrClaimLost) })
}

func (x trial) bindFenced() {
	first := x.begin(lease("first", at(0)))
	second := x.begin(lease("second", at(time.Hour)))
	x.untouched(func() { x.is(x.Bind(x.Context(), first, intent("pi_1"), at(time.Hour)), order.ErrClaimLost) })
	x.ok(x.Bind(x.Context(), second, intent("pi_2"), at(time.Hour)))
	x.untouched(func() { x.is(x.Bind(x.Context(), first, intent("pi_2"), at(time.Hour)), order.ErrClaimLost) })
}

func (x trial) bindSettled() {
	c := x.finished(order.Paid)
	x.untouched(func() { x.is(x.Bind(x.Context(), c, intent("pi_2"), at(time.Minute)), order.ErrClaimLost) })
}

// nobodys is a claim on an order that has no record.
func (x trial) nobodys() order.Claim {
	return order.Claim{Order: x.order, Lease: lease("first", at(0)), Attempt: 1, Intent: "pi_1"}
}

func (x trial) bindUnknown() {
	x.is(x.Bind(x.Context(), x.nobodys(), intent("pi_1"), at(0)), order.ErrClaimLost)
	x.absent()
}

func finishPromises() []promise {
	return []promise{
		{"finish settles with one event and ends the claim", trial.finishSettles},
		{"finish again with the same outcome changes nothing", trial.finishAgain},
		{"finish records a refusal without an intent", trial.finishRefuses},
		{"finish with another outcome returns ErrClaimLost", trial.finishOther},
		{"finish with an invalid transition returns a TransitionError", trial.finishUndrawn},
		{"finish with an intent that is not bound returns ErrClaimLost", trial.finishUnbound},
		{"finish after the claim was lost changes nothing", trial.finishFenced},
		{"finish after the claim was lost succeeds if the outcome is recorded", trial.finishSaidAlready},
		{"finish of an unknown order creates no record", trial.finishUnknown},
	}
}

func (x trial) finishSettles() {
	for _, s := range order.Open.Next() {
		x := x.with(Order(x.order.ID() + order.ID(s)))
		c, now := x.bound("pi_1"), at(2*time.Second)
		want := x.load()
		o := order.Outcome{Status: s, Intent: "pi_1"}
		if s != order.Paid && s != order.Pending {
			o.Failure = "code_of_" + string(s)
		}
		x.ok(x.Finish(x.Context(), c, o, now))
		x.changed(after(want, o, now))
	}
}

// after is the record r once it has settled to o.
func after(r order.Record, o order.Outcome, now time.Time) order.Record {
	r.Seq++
	r.Events = append(slices.Clone(r.Events), order.Event{
		Seq: r.Seq, From: r.Status, To: o.Status, Intent: o.Intent, Failure: o.Failure, At: now,
	})
	r.Status, r.Failure, r.Owner, r.Until = o.Status, o.Failure, "", time.Time{}
	r.UpdatedAt, r.DueAt = now, dueAfter(o.Status, now)
	return r
}

func (x trial) finishAgain() {
	c := x.finished(order.Declined)
	same := order.Outcome{Status: order.Declined, Intent: "pi_1"}
	x.untouched(func() { x.ok(x.Finish(x.Context(), c, same, at(time.Minute))) })
}

func (x trial) finishRefuses() {
	c, want := x.begin(lease("first", at(0))), x.load()
	refused := order.Outcome{Status: order.StatusRefused, Failure: "resource_missing"}
	x.ok(x.Finish(x.Context(), c, refused, at(time.Second)))
	x.changed(after(want, refused, at(time.Second)))

	x = x.with(Order(x.order.ID() + "-paid"))
	c = x.begin(lease("first", at(0)))
	x.untouched(func() {
		x.is(x.Finish(x.Context(), c, order.Outcome{Status: order.Paid}, at(time.Second)), order.ErrClaimLost)
	})
}

func (x trial) finishOther() {
	c := x.finished(order.Declined)
	x.untouched(func() {
		x.is(
			x.Finish(x.Context(), c, order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(time.Minute)),
			order.ErrClaimLost,
		)
		x.is(
			x.Finish(x.Context(), c, order.Outcome{Status: order.Declined, Intent: "pi_2"}, at(time.Minute)),
			order.ErrClaimLost,
		)
	})
}

func (x trial) finishUndrawn() {
	c := x.bound("pi_1")
	for _, s := range []order.Status{order.Open, "lost"} {
		x.untouched(func() {
			err := x.Finish(x.Context(), c, order.Outcome{Status: s, Intent: "pi_1"}, at(time.Second))
			x.undrawn(err, order.TransitionError{From: order.Open, To: s})
		})
	}
}

func (x trial) undrawn(err error, want order.TransitionError) {
	x.Helper()
	var got *order.TransitionError
	if !errors.As(err, &got) || *got != want {
		x.Errorf("got %v, want %v", err, &want)
	}
}

func (x trial) finishUnbound() {
	c := x.begin(lease("first", at(0)))
	paid := order.Outcome{Status: order.Paid, Intent: "pi_1"}
	x.untouched(func() { x.is(x.Finish(x.Context(), c, paid, at(time.Second)), order.ErrClaimLost) })
	x.ok(x.Bind(x.Context(), c, intent("pi_2"), at(time.Second)))
	x.untouched(func() { x.is(x.Finish(x.Context(), c, paid, at(time.Second)), order.ErrClaimLost) })
}

func (x trial) finishFenced() {
	first, second := x.takenOver()
	paid := order.Outcome{Status: order.Paid, Intent: "pi_1"}
	x.untouched(func() { x.is(x.Finish(x.Context(), first, paid, at(time.Hour)), order.ErrClaimLost) })
	x.ok(x.Finish(x.Context(), second, paid, at(time.Hour)))
}

func (x trial) finishSaidAlready() {
	first, second := x.takenOver()
	paid := order.Outcome{Status: order.Paid, Intent: "pi_1"}
	x.ok(x.Finish(x.Context(), second, paid, at(time.Hour)))
	x.untouched(func() {
		x.ok(x.Finish(x.Context(), first, paid, at(2*time.Hour)))
		x.is(
			x.Finish(x.Context(), first, order.Outcome{Status: order.Declined, Intent: "pi_1"}, at(2*time.Hour)),
			order.ErrClaimLost,
		)
	})
}

func (x trial) finishUnknown() {
	x.is(
		x.Finish(x.Context(), x.nobodys(), order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(0)),
		order.ErrClaimLost,
	)
	x.absent()
}

func releasePromises() []promise {
	return []promise{
		{"release lets the next attempt begin at once", trial.releaseFrees},
		{"a released claim is lost", trial.releaseFences},
		{"release after the claim was lost changes nothing", trial.releaseFenced},
		{"release of a settled order changes nothing", trial.releaseSettled},
		{"release of an unknown order creates no record", trial.releaseUnknown},
	}
}

func (x trial) releaseFrees() {
	for name, now := range map[string]time.Time{"-same": at(time.Second), "-later": at(time.Minute), "-behind": at(-time.Hour)} {
		x := x.with(Order(x.order.ID() + order.ID(name)))
		c := x.bound("pi_1")
		want := x.load()
		x.ok(x.Release(x.Context(), c, order.ReasonUnavailable, at(time.Second)))
		got := x.load()
		want.Owner, want.LastError, want.UpdatedAt = "", string(order.ReasonUnavailable), at(time.Second)
		want.Until, want.DueAt = got.Until, got.DueAt // the store's choice: nobody holds it
		x.changed(want)
		if next := x.begin(lease("second", now)); next.Attempt != 2 || next.Intent != "pi_1" {
			x.Errorf("begin %s: got %+v, want attempt 2 with pi_1", name, next)
		}
	}
}

func (x trial) releaseFences() {
	c := x.bound("pi_1")
	x.ok(x.Release(x.Context(), c, order.ReasonUnknown, at(time.Second)))
	x.fenced(c)
}

// fenced checks that nothing can be done with c any more.
func (x trial) fenced(c order.Claim) {
	x.Helper()
	ctx, now := x.Context(), at(time.Hour)
	x.untouched(func() {
		x.is(x.Bind(ctx, c, intent("pi_1"), now), order.ErrClaimLost)
		x.is(x.Finish(ctx, c, order.Outcome{Status: order.Canceled, Intent: "pi_1"}, now), order.ErrClaimLost)
		x.is(x.Release(ctx, c, order.ReasonStore, now), order.ErrClaimLost)
	})
}

func (x trial) releaseFenced() {
	first, second := x.takenOver()
	x.fenced(first)
	x.ok(x.Release(x.Context(), second, order.ReasonUnknown, at(time.Hour)))
}

func (x trial) releaseSettled() { x.fenced(x.finished(order.Paid)) }

func (x trial) releaseUnknown() {
	x.is(x.Release(x.Context(), x.nobodys(), order.ReasonStore, at(0)), order.ErrClaimLost)
	x.absent()
}

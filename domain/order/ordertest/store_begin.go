package ordertest

import (
	"errors"
	"reflect"
	"time"

	"orderonce/domain/order"
)

func beginPromises() []promise {
	return []promise{
		{"a new order is claimed", trial.freshIsClaimed},
		{"an order whose lease has expired is taken over with its intent", trial.endedIsTakenOver},
		{"a lease is respected through its last millisecond", trial.leaseHoldsToItsEnd},
		{"a lease longer than the maximum is ignored", trial.absurdLeaseIsTakenOver},
		{"the longest lease of the most skewed clock is respected", trial.skewedLeaseHolds},
		{"begin again by the same owner is no new attempt", trial.ownBeginIsOurs},
		{"begin with different content returns ErrConflict", trial.otherContentConflicts},
		{"begin of a settled order returns its record", trial.settledRefuses},
		{"begin reopens a refused order and adds an event", trial.refusedIsReopened},
		{"begin reopens a refused order with its intent", trial.refusedKeepsItsIntent},
		{"a conflict is reported before the settled status", trial.conflictBeforeSettled},
		{"begin by the owner that settled the order returns its record", trial.ownSettledIsSettled},
		{"begin with an unknown fingerprint version changes nothing", trial.unknownVersionIsLeftAlone},
		{"begin and load of a corrupt record return ErrCorrupt", trial.corruptIsLeftAlone},
		{"begin and load of an unknown status return ErrUnknownVersion", trial.unknownStatusIsLeftAlone},
		{"two orders are independent", trial.ordersAreApart},
	}
}

func (x trial) freshIsClaimed() {
	l := lease("first", at(0))
	got := x.begin(l)
	if !reflect.DeepEqual(got.Order, x.order) || got.Lease.Owner != "first" || got.Attempt != 1 ||
		got.Intent != "" {
		x.Errorf("got claim %+v, want attempt 1 of this order for \"first\" without an intent", got)
	}
	if !got.CreatedAt.Equal(l.From) {
		x.Errorf("got a record created at %v, want %v", got.CreatedAt, l.From)
	}
	x.changed(order.Record{
		OrderID: x.order.ID(), CustomerID: x.order.CustomerID(), Total: x.order.Total(),
		Fingerprint: x.order.Fingerprint(), Status: order.Open, Owner: "first", Attempt: 1, Until: l.Until,
		CreatedAt: l.From, UpdatedAt: l.From, DueAt: dueAfter(order.Open, l.From),
	})
}

func (x trial) endedIsTakenOver() {
	first := x.bound("pi_1")
	want := x.load()
	l := lease("second", first.Lease.Until.Add(time.Millisecond))
	got := x.begin(l)
	if got.Attempt != 2 || got.Intent != "pi_1" || got.Lease.Owner != "second" ||
		!got.CreatedAt.Equal(want.CreatedAt) {
		x.Errorf("got claim %+v, want attempt 2 for \"second\" with pi_1, created at %v", got, want.CreatedAt)
	}
	want.Owner, want.Until, want.Attempt = l.Owner, l.Until, 2
	want.UpdatedAt, want.DueAt = l.From, dueAfter(order.Open, l.From)
	x.changed(want)
}

func (x trial) leaseHoldsToItsEnd() {
	first := x.begin(lease("first", at(0)))
	for _, now := range []time.Time{at(0), first.Lease.Until} {
		x.refusedUntil(first.Lease.Until, lease("second", now))
	}
	x.begin(lease("second", first.Lease.Until.Add(time.Millisecond)))
}

// refusedUntil checks that somebody holds the order, and that asking changed nothing.
func (x trial) refusedUntil(until time.Time, l order.Lease) {
	x.Helper()
	x.untouched(func() {
		_, err := x.Begin(x.Context(), x.order, l)
		var progress *order.InProgressError
		if !errors.As(err, &progress) || !progress.Until.Equal(until) {
			x.Errorf("begin at %v: got %v, want an InProgressError until %v", l.From, err, until)
		}
	})
}

// What an honest lease can be, from outside: order.MaxLease and order.MaxSkew say the
// same, and a wrong one of them is seen here.
const (
	longestRun = 900 * time.Second // of a function (Lambda quotas, "Function timeout")
	// worstSkew is between an honest clock and ours. AWS refuses what a clock signs that is
	// further off (IAM user guide, "Signature Version 4": "a request must reach AWS within
	// five minutes of the time stamp in the request").
	worstSkew = 5 * time.Minute
)

func (x trial) absurdLeaseIsTakenOver() {
	years := order.Lease{Owner: "broken clock", From: at(0), Until: at(20_000 * time.Hour)}
	x.begin(years)
	now := years.Until.Add(-longestRun - worstSkew - time.Millisecond)
	if got := x.begin(lease("second", now)); got.Attempt != 2 {
		x.Errorf("got attempt %d, want 2", got.Attempt)
	}
	backwards := at(-time.Hour)
	if got := x.begin(lease("third", backwards)); got.Attempt != 3 {
		x.Errorf("got attempt %d of a clock that went backwards, want 3", got.Attempt)
	}
	if r := x.load(); !r.CreatedAt.Equal(at(0)) || !r.UpdatedAt.Equal(backwards) {
		x.Errorf("got created %v, updated %v, want %v, %v", r.CreatedAt, r.UpdatedAt, at(0), backwards)
	}
}

func (x trial) skewedLeaseHolds() {
	until := at(0).Add(longestRun + worstSkew)
	x.begin(order.Lease{Owner: "first", From: at(0), Until: until})
	x.refusedUntil(until, lease("second", at(0)))
}

func (x trial) ownBeginIsOurs() {
	first := x.bound("pi_1")
	x.untouched(func() {
		again := x.begin(first.Lease)
		if again.Attempt != 1 || again.Intent != "pi_1" || again.Lease.Owner != "first" ||
			!reflect.DeepEqual(again.Order, x.order) {
			x.Errorf("got claim %+v, want %+v", again, first)
		}
	})
	x.ok(x.Finish(x.Context(), first, order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(time.Second)))
}

func (x trial) otherContentConflicts() {
	first := x.begin(lease("first", at(0)))
	for _, now := range []time.Time{at(time.Second), first.Lease.Until.Add(time.Hour)} {
		x.untouched(func() {
			_, err := x.Begin(x.Context(), otherContent(x.order), lease("second", now))
			x.is(err, order.ErrConflict)
		})
	}
	x.untouched(func() {
		_, err := x.Begin(x.Context(), otherContent(x.order), first.Lease)
		x.is(err, order.ErrConflict)
	})
}

func (x trial) settledRefuses() {
	for _, s := range order.Open.Next() {
		if s == order.StatusRefused {
			continue
		}
		x := x.with(Order(x.order.ID() + order.ID(s)))
		x.finished(s)
		x.untouched(func() { x.refusedAsSettled(s, lease("second", at(time.Hour))) })
	}
}

func (x trial) refusedAsSettled(s order.Status, l order.Lease) {
	x.Helper()
	_, err := x.Begin(x.Context(), x.order, l)
	var settled *order.SettledError
	if !errors.As(err, &settled) {
		x.Fatalf("got %v, want a SettledError", err)
	}
	want := x.load()
	want.Events = nil
	if d := diff(inMillis(settled.Record), want); d != "" || want.Status != s || want.Intent != "pi_1" {
		x.Errorf("got a SettledError whose record is not the %s one:%s", s, d)
	}
}

func (x trial) refusedIsReopened() {
	first := x.begin(lease("first", at(0)))
	x.ok(
		x.Finish(
			x.Context(),
			first,
			order.Outcome{Status: order.StatusRefused, Failure: "resource_missing"},
			at(time.Second),
		),
	)
	x.ok(x.Park(x.Context(), x.order, order.ReasonRefused, at(2*time.Second)))
	x.untouched(func() {
		_, err := x.Begin(x.Context(), otherContent(x.order), lease("other", at(time.Minute)))
		x.is(err, order.ErrConflict)
	})
	x.reopened("second", 1, at(time.Minute))
}

func (x trial) refusedKeepsItsIntent() {
	x.finished(order.StatusRefused)
	c := x.reopened("second", 1, at(time.Minute))
	if c.Intent != "pi_1" {
		x.Errorf("got intent %q, want pi_1", c.Intent)
	}
	x.ok(x.Finish(x.Context(), c, order.Outcome{Status: order.StatusRefused, Intent: "pi_1"}, at(2*time.Minute)))
	again := x.reopened("third", 3, at(time.Hour))
	x.ok(x.Finish(x.Context(), again, order.Outcome{Status: order.Paid, Intent: "pi_1"}, at(2*time.Hour)))
}

// reopened begins a refused order whose last event is seq, and checks its claim and its
// record.
func (x trial) reopened(owner string, seq int, now time.Time) order.Claim {
	x.Helper()
	want, l := x.load(), lease(owner, now)
	c := x.begin(l)
	if c.Attempt != want.Attempt+1 || c.Lease.Owner != owner {
		x.Errorf("got claim %+v, want attempt %d for %q", c, want.Attempt+1, owner)
	}
	want.Events = append(want.Events, order.Event{
		Seq: seq + 1, From: order.StatusRefused, To: order.Open, Intent: want.Intent, At: now,
	})
	want.Status, want.Failure, want.Seq, want.Attempt = order.Open, "", seq+1, want.Attempt+1
	want.Owner, want.Until, want.UpdatedAt, want.DueAt = owner, l.Until, now, dueAfter(order.Open, now)
	want.ParkedAt = time.Time{}
	x.changed(want)
	return c
}

func (x trial) conflictBeforeSettled() {
	x.finished(order.Paid)
	x.untouched(func() {
		_, err := x.Begin(x.Context(), otherContent(x.order), lease("second", at(time.Hour)))
		x.is(err, order.ErrConflict)
	})
}

func (x trial) ownSettledIsSettled() {
	c := x.finished(order.Paid)
	x.untouched(func() { x.refusedAsSettled(order.Paid, c.Lease) })
}

func (x trial) unknownVersionIsLeftAlone() {
	w := x.rewriter()
	c := x.begin(lease("first", at(0)))
	x.ok(w.SetFingerprint(x.Context(), x.order.ID(), "v999:0"))
	for _, l := range []order.Lease{c.Lease, lease("second", at(time.Hour))} {
		x.untouched(func() {
			_, err := x.Begin(x.Context(), x.order, l)
			x.is(err, order.ErrUnknownVersion)
		})
	}
}

// rewriter skips the promise if the store is not a Editor.
func (x trial) rewriter() Editor { //nolint:ireturn // the store's own type is its own
	x.Helper()
	w, can := x.Store.(Editor)
	if !can {
		x.Skip(
			"the suite cannot write what a newer release would: make the store that open returns an ordertest.Editor",
		)
	}
	return w
}

func (x trial) corruptIsLeftAlone() {
	w := x.rewriter()
	x.begin(lease("first", at(0)))
	x.ok(w.SetFingerprint(x.Context(), x.order.ID(), ""))
	x.unreadable(order.ErrCorrupt)
}

func (x trial) unknownStatusIsLeftAlone() {
	w := x.rewriter()
	x.begin(lease("first", at(0)))
	x.ok(w.SetStatus(x.Context(), x.order.ID(), "shipped"))
	x.unreadable(order.ErrUnknownVersion)
}

// unreadable checks that neither Begin nor Load reads the record.
func (x trial) unreadable(want error) {
	x.Helper()
	_, err := x.Begin(x.Context(), x.order, lease("second", at(time.Hour)))
	x.is(err, want)
	_, err = x.Load(x.Context(), x.order.ID())
	x.is(err, want)
}

func (x trial) ordersAreApart() {
	other := x.with(Order(x.order.ID() + "-2"))
	x.finished(order.Paid)
	mine, theirs := x.load(), other.bound("pi_2")
	x.ok(
		x.Finish(
			x.Context(),
			theirs,
			order.Outcome{Status: order.Declined, Intent: "pi_2", Failure: "lost_card"},
			at(time.Second),
		),
	)
	x.changed(mine)
	if r := other.load(); r.Status != order.Declined || r.Intent != "pi_2" || len(r.Events) != 1 {
		x.Errorf("got the other order %+v, want it declined with pi_2 and one event", r)
	}
	if reflect.DeepEqual(mine.Events, other.load().Events) {
		x.Error("two orders have the same events")
	}
}

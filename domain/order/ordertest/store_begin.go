package ordertest

import (
	"errors"
	"reflect"
	"time"

	"orderonce/domain/order"
)

func beginPromises() []promise {
	return []promise{
		{"a new order is claimed", storeTest.beginNew},
		{"an order whose lease has expired is taken over with its intent", storeTest.beginTakesOver},
		{"a lease is respected through its last millisecond", storeTest.leaseIsRespected},
		{"a lease longer than the maximum is ignored", storeTest.longLeaseIsIgnored},
		{"the longest lease of the most skewed clock is respected", storeTest.skewedLeaseIsRespected},
		{"the trace of the first claim that has one is kept", storeTest.beginKeepsTheTrace},
		{"begin again by the same owner is no new attempt", storeTest.beginAgain},
		{"begin with different content returns ErrConflict", storeTest.beginDifferentContent},
		{"begin of a settled order returns its record", storeTest.beginSettled},
		{"begin reopens a refused order and adds an event", storeTest.beginRefused},
		{"begin reopens a refused order with its intent", storeTest.beginRefusedWithIntent},
		{"a conflict is reported before the settled status", storeTest.conflictBeforeSettled},
		{"begin by the owner that settled the order returns its record", storeTest.beginSettledByOwner},
		{"begin with an unknown fingerprint version changes nothing", storeTest.beginUnknownVersion},
		{"begin and load of a corrupt record return ErrCorrupt", storeTest.readCorrupt},
		{"begin and load of an unknown status return ErrUnknownVersion", storeTest.readUnknownStatus},
		{"two orders are independent", storeTest.ordersAreIndependent},
	}
}

func (x storeTest) beginNew() {
	l := lease("first", at(0))
	got := x.mustBegin(l)
	if !reflect.DeepEqual(got.Order, x.order) || got.Lease.Owner != "first" || got.Attempt != 1 ||
		got.Intent != "" {
		x.Errorf("got claim %+v, want attempt 1 of this order for \"first\" without an intent", got)
	}
	if !got.CreatedAt.Equal(l.From) {
		x.Errorf("got a record created at %v, want %v", got.CreatedAt, l.From)
	}
	x.wantRecord(order.Record{
		OrderID: x.order.ID(), CustomerID: x.order.CustomerID(), Total: x.order.Total(),
		Fingerprint: x.order.Fingerprint(), Status: order.Open, Owner: "first", Attempt: 1, Until: l.Until,
		CreatedAt: l.From, UpdatedAt: l.From, DueAt: dueAfter(order.Open, l.From),
	})
}

func (x storeTest) beginTakesOver() {
	first := x.mustBind("pi_1")
	want := x.mustLoad()
	l := lease("second", first.Lease.Until.Add(time.Millisecond))
	got := x.mustBegin(l)
	if got.Attempt != 2 || got.Intent != "pi_1" || got.Lease.Owner != "second" ||
		!got.CreatedAt.Equal(want.CreatedAt) {
		x.Errorf("got claim %+v, want attempt 2 for \"second\" with pi_1, created at %v", got, want.CreatedAt)
	}
	want.Owner, want.Until, want.Attempt = l.Owner, l.Until, 2
	want.UpdatedAt, want.DueAt = l.From, dueAfter(order.Open, l.From)
	x.wantRecord(want)
}

func (x storeTest) beginKeepsTheTrace() {
	first := x.mustBegin(lease("first", at(0)))
	if first.Trace != "" || x.mustLoad().Trace != "" {
		x.Errorf("got trace %q and record %q of a claim without one, want none", first.Trace, x.mustLoad().Trace)
	}
	const kept = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, trace := range []order.Trace{kept, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", ""} {
		l := lease("with "+string(trace), x.mustLoad().Until.Add(time.Millisecond))
		l.Trace = trace
		if got := x.mustBegin(l).Trace; got != kept || x.mustLoad().Trace != kept {
			x.Errorf("claim with trace %q: got %q and record %q, want %q", trace, got, x.mustLoad().Trace, kept)
		}
	}
}

func (x storeTest) leaseIsRespected() {
	first := x.mustBegin(lease("first", at(0)))
	for _, now := range []time.Time{at(0), first.Lease.Until} {
		x.wantInProgress(first.Lease.Until, lease("second", now))
	}
	x.mustBegin(lease("second", first.Lease.Until.Add(time.Millisecond)))
}

// wantInProgress checks that Begin returns an InProgressError and changes nothing.
func (x storeTest) wantInProgress(until time.Time, l order.Lease) {
	x.Helper()
	x.wantUnchanged(func() {
		_, err := x.Begin(x.Context(), x.order, l)
		var progress *order.InProgressError
		if !errors.As(err, &progress) || !progress.Until.Equal(until) {
			x.Errorf("begin at %v: got %v, want an InProgressError until %v", l.From, err, until)
		}
	})
}

// The values that order.MaxLease and order.MaxSkew must have, from their sources.
const (
	maxRun = 900 * time.Second // of a function (Lambda quotas, "Function timeout")
	// maxSkew is the largest difference between two correct clocks. AWS rejects requests
	// signed with a larger one (IAM user guide, "Signature Version 4": "a request must
	// reach AWS within five minutes of the time stamp in the request").
	maxSkew = 5 * time.Minute
)

func (x storeTest) longLeaseIsIgnored() {
	years := order.Lease{Owner: "broken clock", From: at(0), Until: at(20_000 * time.Hour)}
	x.mustBegin(years)
	now := years.Until.Add(-maxRun - maxSkew - time.Millisecond)
	if got := x.mustBegin(lease("second", now)); got.Attempt != 2 {
		x.Errorf("got attempt %d, want 2", got.Attempt)
	}
	backwards := at(-time.Hour)
	if got := x.mustBegin(lease("third", backwards)); got.Attempt != 3 {
		x.Errorf("with a clock that went backwards: got attempt %d, want 3", got.Attempt)
	}
	if r := x.mustLoad(); !r.CreatedAt.Equal(at(0)) || !r.UpdatedAt.Equal(backwards) {
		x.Errorf("got created %v, updated %v, want %v, %v", r.CreatedAt, r.UpdatedAt, at(0), backwards)
	}
}

func (x storeTest) skewedLeaseIsRespected() {
	until := at(0).Add(maxRun + maxSkew)
	x.mustBegin(order.Lease{Owner: "first", From: at(0), Until: until})
	x.wantInProgress(until, lease("second", at(0)))
}

func (x storeTest) beginAgain() {
	first := x.mustBind("pi_1")
	x.wantUnchanged(func() {
		again := x.mustBegin(first.Lease)
		if again.Attempt != 1 || again.Intent != "pi_1" || again.Lease.Owner != "first" ||
			!reflect.DeepEqual(again.Order, x.order) {
			x.Errorf("got claim %+v, want %+v", again, first)
		}
	})
	x.must(x.Finish(x.Context(), first, outcome(order.Paid, "pi_1"), at(time.Second)))
}

func (x storeTest) beginDifferentContent() {
	first := x.mustBegin(lease("first", at(0)))
	for _, now := range []time.Time{at(time.Second), first.Lease.Until.Add(time.Hour)} {
		x.wantUnchanged(func() {
			_, err := x.Begin(x.Context(), differentContent(x.order), lease("second", now))
			x.wantError(err, order.ErrConflict)
		})
	}
	x.wantUnchanged(func() {
		_, err := x.Begin(x.Context(), differentContent(x.order), first.Lease)
		x.wantError(err, order.ErrConflict)
	})
}

func (x storeTest) beginSettled() {
	for _, s := range order.Open.Next() {
		if s == order.Refused {
			continue
		}
		x := x.with(Order(x.order.ID() + order.ID(s)))
		x.mustFinish(s)
		x.wantUnchanged(func() { x.wantSettled(s, lease("second", at(time.Hour))) })
	}
}

func (x storeTest) wantSettled(s order.Status, l order.Lease) {
	x.Helper()
	_, err := x.Begin(x.Context(), x.order, l)
	var settled *order.SettledError
	if !errors.As(err, &settled) {
		x.Fatalf("got %v, want a SettledError", err)
	}
	want := x.mustLoad()
	want.Events = nil
	if d := diff(inMillis(settled.Record), want); d != "" || want.Status != s || want.Intent != "pi_1" {
		x.Errorf("SettledError, want the %s record:%s", s, d)
	}
}

func (x storeTest) beginRefused() {
	first := x.mustBegin(lease("first", at(0)))
	refused := order.Outcome{Status: order.Refused, Failure: "resource_missing"}
	x.must(x.Finish(x.Context(), first, refused, at(time.Second)))
	x.must(x.Park(x.Context(), x.order, order.ReasonRefused, at(2*time.Second)))
	x.wantUnchanged(func() {
		_, err := x.Begin(x.Context(), differentContent(x.order), lease("other", at(time.Minute)))
		x.wantError(err, order.ErrConflict)
	})
	x.mustReopen("second", 1, at(time.Minute))
}

func (x storeTest) beginRefusedWithIntent() {
	x.mustFinish(order.Refused)
	c := x.mustReopen("second", 1, at(time.Minute))
	if c.Intent != "pi_1" {
		x.Errorf("got intent %q, want pi_1", c.Intent)
	}
	x.must(x.Finish(x.Context(), c, outcome(order.Refused, "pi_1"), at(2*time.Minute)))
	again := x.mustReopen("third", 3, at(time.Hour))
	x.must(x.Finish(x.Context(), again, outcome(order.Paid, "pi_1"), at(2*time.Hour)))
}

// mustReopen begins a refused order whose last event is seq, and checks claim and record.
func (x storeTest) mustReopen(owner string, seq int, now time.Time) order.Claim {
	x.Helper()
	want, l := x.mustLoad(), lease(owner, now)
	c := x.mustBegin(l)
	if c.Attempt != want.Attempt+1 || c.Lease.Owner != owner {
		x.Errorf("got claim %+v, want attempt %d for %q", c, want.Attempt+1, owner)
	}
	want.Events = append(want.Events, order.Event{
		Seq: seq + 1, From: order.Refused, To: order.Open, Intent: want.Intent, At: now,
	})
	want.Status, want.Failure, want.Seq, want.Attempt = order.Open, "", seq+1, want.Attempt+1
	want.Owner, want.Until, want.UpdatedAt, want.DueAt = owner, l.Until, now, dueAfter(order.Open, now)
	want.ParkedAt = time.Time{}
	x.wantRecord(want)
	return c
}

func (x storeTest) conflictBeforeSettled() {
	x.mustFinish(order.Paid)
	x.wantUnchanged(func() {
		_, err := x.Begin(x.Context(), differentContent(x.order), lease("second", at(time.Hour)))
		x.wantError(err, order.ErrConflict)
	})
}

func (x storeTest) beginSettledByOwner() {
	c := x.mustFinish(order.Paid)
	x.wantUnchanged(func() { x.wantSettled(order.Paid, c.Lease) })
}

func (x storeTest) beginUnknownVersion() {
	w := x.editor()
	c := x.mustBegin(lease("first", at(0)))
	x.must(w.SetFingerprint(x.Context(), x.order.ID(), "v999:0"))
	for _, l := range []order.Lease{c.Lease, lease("second", at(time.Hour))} {
		x.wantUnchanged(func() {
			_, err := x.Begin(x.Context(), x.order, l)
			x.wantError(err, order.ErrUnknownVersion)
		})
	}
}

// editor skips the test if the store is not an Editor.
func (x storeTest) editor() Editor { //nolint:ireturn // the store's type is unknown
	x.Helper()
	e, ok := x.Store.(Editor)
	if !ok {
		x.Skip("the store is not an ordertest.Editor: return one from open to test records of a newer release")
	}
	return e
}

func (x storeTest) readCorrupt() {
	w := x.editor()
	x.mustBegin(lease("first", at(0)))
	x.must(w.SetFingerprint(x.Context(), x.order.ID(), ""))
	x.wantUnreadable(order.ErrCorrupt)
}

func (x storeTest) readUnknownStatus() {
	w := x.editor()
	x.mustBegin(lease("first", at(0)))
	x.must(w.SetStatus(x.Context(), x.order.ID(), "shipped"))
	x.wantUnreadable(order.ErrUnknownVersion)
}

// wantUnreadable checks that Begin and Load return this error.
func (x storeTest) wantUnreadable(want error) {
	x.Helper()
	_, err := x.Begin(x.Context(), x.order, lease("second", at(time.Hour)))
	x.wantError(err, want)
	_, err = x.Load(x.Context(), x.order.ID())
	x.wantError(err, want)
}

func (x storeTest) ordersAreIndependent() {
	other := x.with(Order(x.order.ID() + "-2"))
	x.mustFinish(order.Paid)
	mine, theirs := x.mustLoad(), other.mustBind("pi_2")
	declined := order.Outcome{Status: order.Declined, Intent: "pi_2", Failure: "lost_card"}
	x.must(x.Finish(x.Context(), theirs, declined, at(time.Second)))
	x.wantRecord(mine)
	if r := other.mustLoad(); r.Status != order.Declined || r.Intent != "pi_2" || len(r.Events) != 1 {
		x.Errorf("got the other order %+v, want it declined with pi_2 and one event", r)
	}
	if reflect.DeepEqual(mine.Events, other.mustLoad().Events) {
		x.Errorf("both orders have the events %v", mine.Events)
	}
}

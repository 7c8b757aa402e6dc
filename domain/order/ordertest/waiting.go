package ordertest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"orderonce/domain/order"
)

// WaitingStore is a store with an index of the orders that wait.
type WaitingStore interface {
	Store
	order.Waiting
}

// TestWaiting tests the contract of order.Waiting. For open see TestStore. The index of
// the store under test must not lag.
//
//nolint:tparallel // the caller calls t.Parallel
func TestWaiting(t *testing.T, open func(t *testing.T) WaitingStore) {
	t.Helper()
	for _, p := range waitingPromises() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			p.test(waitingTest{newStoreTest(t, store), store})
		})
	}
}

// waitingPromise is one sentence of the contract and its test.
type waitingPromise struct {
	name string
	test func(waitingTest)
}

// waitingTest is one order in a store that has an index.
type waitingTest struct {
	storeTest
	waiting order.Waiting
}

func waitingPromises() []waitingPromise {
	return []waitingPromise{
		{"an open order is due a quarter of an hour after its claim", waitingTest.openIsDue},
		{"a pending order is due after an hour, and a paid one never", waitingTest.pendingIsDue},
		{"a postponed order is due at its new time, and nothing else changes", waitingTest.postponed},
		{"an order whose recheck ends is never due, and nothing else changes", waitingTest.ended},
		{"postpone of a record that changed returns ErrStale", waitingTest.stale},
		{"due may be left early", waitingTest.leftEarly},
	}
}

// wantDue compares whether the order is due.
func (x waitingTest) wantDue(when time.Time, want bool) {
	x.Helper()
	var all []order.ID
	for id, err := range x.waiting.Due(x.Context(), when) {
		if err != nil {
			x.Fatalf("due at %v: %v", when, err)
		}
		all = append(all, id)
	}
	if got := slices.Contains(all, x.order.ID()); got != want {
		x.Errorf("due at %v: got %t, want %t", when, got, want)
	}
}

func (x waitingTest) openIsDue() {
	x.mustBegin(lease("first", at(0)))
	x.wantDue(at(15*time.Minute-time.Millisecond), false)
	x.wantDue(at(15*time.Minute), true)
	x.wantDue(at(24*time.Hour), true)
}

func (x waitingTest) pendingIsDue() {
	c := x.mustBind("pi_1")
	x.must(x.Finish(x.Context(), c, outcome(order.Pending, "pi_1"), at(time.Minute)))
	x.wantDue(at(time.Hour), false)
	x.wantDue(at(time.Hour+time.Minute), true)
	x.must(x.Settle(x.Context(), x.mustLoad(), outcome(order.Paid, "pi_1"), at(2*time.Hour)))
	x.wantDue(at(1000*time.Hour), false)
}

func (x waitingTest) postponed() {
	x.mustBegin(lease("first", at(0)))
	want := x.mustLoad()
	want.DueAt = at(5 * time.Hour)
	x.must(x.waiting.Postpone(x.Context(), x.mustLoad(), want.DueAt))
	x.wantRecord(want)
	x.wantDue(at(5*time.Hour-time.Millisecond), false)
	x.wantDue(at(5*time.Hour), true)
}

func (x waitingTest) ended() {
	x.mustFinish(order.Declined)
	want := x.mustLoad()
	want.DueAt = time.Time{}
	x.must(x.waiting.Postpone(x.Context(), x.mustLoad(), time.Time{}))
	x.wantRecord(want)
	x.wantDue(at(1000*time.Hour), false)
	x.must(x.Settle(x.Context(), x.mustLoad(), outcome(order.Paid, "pi_1"), at(2*time.Hour)))
}

func (x waitingTest) stale() {
	x.wantStale(order.Record{OrderID: x.order.ID(), Status: order.Open, DueAt: at(0)})
	c := x.mustBind("pi_1")
	loaded := x.mustLoad()
	x.must(x.waiting.Postpone(x.Context(), loaded, at(time.Hour)))
	x.wantStale(loaded) // another due time
	loaded = x.mustLoad()
	x.must(x.Finish(x.Context(), c, outcome(order.Pending, "pi_1"), at(time.Minute)))
	x.wantStale(loaded) // another status
	loaded = x.mustLoad()
	loaded.Seq++
	x.wantStale(loaded)
}

func (x waitingTest) wantStale(r order.Record) {
	x.Helper()
	if err := x.waiting.Postpone(x.Context(), r, at(100*time.Hour)); !errors.Is(err, order.ErrStale) {
		x.Errorf("got %v, want %v", err, order.ErrStale)
	}
}

func (x waitingTest) leftEarly() {
	x.mustBegin(lease("first", at(0)))
	n := 0
	for _, err := range x.waiting.Due(x.Context(), at(time.Hour)) {
		if err != nil {
			x.Fatalf("due: %v", err)
		}
		n++
		break
	}
	if n != 1 {
		x.Errorf("got %d orders, want one", n)
	}
}

package ordertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
)

// Store is a store's two ports. One that also is a Editor is held to what it does with
// a newer release's records.
type Store interface {
	order.Claims
	order.Records
}

// Editor is a store in which a test can edit a record, as a newer release or a person
// would write it.
type Editor interface {
	SetFingerprint(ctx context.Context, id order.ID, f order.Fingerprint) error
	SetStatus(ctx context.Context, id order.ID, s order.Status) error
}

// TestStore holds a store to the contract of order.Claims and order.Records. open may
// return the same store each time, or a new one: no two tests of one run use the same
// order. Stores keep times to the millisecond.
//
// What the ports' comments leave to it: an outcome of an intent that is not the bound one
// is ErrClaimLost to Finish and ErrStale to Settle. Settle asks in this order: does the
// record say so already (nil), did somebody draw the change from the record as loaded
// (*TransitionError), is the record still as loaded and the intent its own (ErrStale).
// Every write sets UpdatedAt to its time; DueAt is Status.RecheckAfter after a Begin,
// Finish or Settle.
//
//nolint:tparallel // the caller says t.Parallel
func TestStore(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for _, p := range storePromises() {
		t.Run(p.says, func(t *testing.T) {
			t.Parallel()
			p.keep(newTrial(t, open(t)))
		})
	}
}

func storePromises() []promise {
	return slices.Concat(beginPromises(), bindPromises(), finishPromises(), releasePromises(), recordsPromises(),
		recreatePromises(), parkPromises(), racePromises())
}

// promise is one sentence of the contract, and how to see that it is kept.
type promise struct {
	says string
	keep func(trial)
}

// trial is one order in the store under test. It asks for a testing.TB and not for a
// *testing.T, so that a test of the suite itself can see it fail.
type trial struct {
	testing.TB
	Store

	order order.Order
}

func newTrial(tb testing.TB, s Store) trial {
	tb.Helper()
	return trial{tb, s, Order(idOf(tb.Name()))}
}

// with is the trial of another order in the same store.
func (x trial) with(o order.Order) trial {
	x.order = o
	return x
}

func (x trial) begin(l order.Lease) order.Claim {
	x.Helper()
	c, err := x.Begin(x.Context(), x.order, l)
	if err != nil {
		x.Fatalf("begin for %q: %v", l.Owner, err)
	}
	return c
}

// intent is what Bind is given.
func intent(id order.IntentID) order.Intent {
	return order.Intent{ID: id, State: order.NeedsConfirmation, Mode: order.TestMode}
}

// bound is a claim at time 0 whose intent is bound a second later.
func (x trial) bound(id order.IntentID) order.Claim {
	x.Helper()
	c := x.begin(lease("first", at(0)))
	x.ok(x.Bind(x.Context(), c, intent(id), at(time.Second)))
	c.Intent = id
	return c
}

// takenOver is two claims: the first, with pi_1 bound, and the one that followed when its
// lease had ended.
func (x trial) takenOver() (fenced, now order.Claim) {
	x.Helper()
	fenced = x.bound("pi_1")
	return fenced, x.begin(lease("second", fenced.Lease.Until.Add(time.Millisecond)))
}

// finished is an order that a worker settled at two seconds.
func (x trial) finished(s order.Status) order.Claim {
	x.Helper()
	c := x.bound("pi_1")
	x.ok(x.Finish(x.Context(), c, order.Outcome{Status: s, Intent: "pi_1"}, at(2*time.Second)))
	return c
}

func (x trial) load() order.Record {
	x.Helper()
	r, err := x.Load(x.Context(), x.order.ID())
	if err != nil {
		x.Fatalf("load: %v", err)
	}
	return inMillis(r)
}

func (x trial) ok(err error) {
	x.Helper()
	if err != nil {
		x.Fatalf("got %v, want no error", err)
	}
}

func (x trial) is(got, want error) {
	x.Helper()
	if !errors.Is(got, want) {
		x.Errorf("got error %v, want %v", got, want)
	}
}

// absent checks that a refused write on an order that nobody began made no record of it.
func (x trial) absent() {
	x.Helper()
	_, err := x.Load(x.Context(), x.order.ID())
	x.is(err, order.ErrNotFound)
}

// changed checks the whole record: a write changes what it promises and nothing else.
func (x trial) changed(want order.Record) {
	x.Helper()
	if d := diff(x.load(), inMillis(want)); d != "" {
		x.Errorf("the record is not what it should be:%s", d)
	}
}

// untouched checks that do leaves nothing behind.
func (x trial) untouched(do func()) {
	x.Helper()
	before := x.load()
	do()
	x.changed(before)
}

// dueAfter is Record.DueAt of an order that became s at that time.
func dueAfter(s order.Status, at time.Time) time.Time {
	if after, waits := s.RecheckAfter(); waits {
		return at.Add(after)
	}
	return time.Time{}
}

// inMillis is r with its times as every store can keep them.
func inMillis(r order.Record) order.Record {
	times := []*time.Time{&r.Until, &r.CreatedAt, &r.UpdatedAt, &r.DueAt, &r.ParkedAt}
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		times = append(times, &r.Events[i].At)
	}
	for _, t := range times {
		if !t.IsZero() {
			*t = time.UnixMilli(t.UnixMilli()).UTC()
		}
	}
	if len(r.Events) == 0 {
		r.Events = nil
	}
	return r
}

// diff names the fields in which two values of one struct type differ; "" if there are
// none.
func diff[T any](got, want T) string {
	var b strings.Builder
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if a, b2 := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b2) {
			fmt.Fprintf(&b, "\n  %s: got %v, want %v", g.Type().Field(i).Name, a, b2)
		}
	}
	return b.String()
}

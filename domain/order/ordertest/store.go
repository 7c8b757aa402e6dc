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

// Store is the ports of a store. If it is also an Editor, TestStore tests records of a
// newer release too.
type Store interface {
	order.Claims
	order.Records
	order.DisputeRecords
}

// Editor is a store in which a test can edit records, as a newer release or a person
// would.
type Editor interface {
	SetFingerprint(ctx context.Context, id order.ID, f order.Fingerprint) error
	SetStatus(ctx context.Context, id order.ID, s order.Status) error
}

// TestStore tests the contract of order.Claims, order.Records and order.DisputeRecords.
// open may return the same store each time, or a new one: no two tests of one run use the
// same order. Stores keep times to the millisecond.
//
// It also defines what the ports' comments leave open. For an outcome of an intent that
// is not bound, Finish returns ErrClaimLost and Settle returns ErrStale. Settle checks in
// this order: the record already has the outcome (nil), the transition from the loaded
// record is invalid (*TransitionError), the record changed or the intent differs
// (ErrStale). Every write sets UpdatedAt to its time. Begin, Finish and Settle set DueAt
// to that time plus Status.RecheckAfter.
//
//nolint:tparallel // the caller calls t.Parallel
func TestStore(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for _, p := range storePromises() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.test(newStoreTest(t, open(t)))
		})
	}
}

func storePromises() []promise {
	return slices.Concat(beginPromises(), bindPromises(), finishPromises(), releasePromises(), recordsPromises(),
		recreatePromises(), parkPromises(), disputePromises(), racePromises())
}

// promise is one sentence of the contract and its test.
type promise struct {
	name string
	test func(storeTest)
}

// storeTest is one order in the store under test. It embeds a testing.TB and not a
// *testing.T, so that a test of the suite itself can observe its failures.
type storeTest struct {
	testing.TB
	Store

	order order.Order
}

func newStoreTest(tb testing.TB, s Store) storeTest {
	tb.Helper()
	return storeTest{tb, s, Order(idOf(tb.Name()))}
}

// with returns the test of another order in the same store.
func (x storeTest) with(o order.Order) storeTest {
	x.order = o
	return x
}

func (x storeTest) mustBegin(l order.Lease) order.Claim {
	x.Helper()
	c, err := x.Begin(x.Context(), x.order, l)
	if err != nil {
		x.Fatalf("begin for %q: %v", l.Owner, err)
	}
	return c
}

// intent returns an intent for Bind.
func intent(id order.IntentID) order.Intent {
	return order.Intent{ID: id, State: order.NeedsConfirmation, Mode: order.TestMode}
}

func outcome(s order.Status, i order.IntentID) order.Outcome {
	return order.Outcome{Status: s, Intent: i}
}

// mustBind claims the order at time 0 and binds the intent a second later.
func (x storeTest) mustBind(id order.IntentID) order.Claim {
	x.Helper()
	c := x.mustBegin(lease("first", at(0)))
	x.must(x.Bind(x.Context(), c, intent(id), at(time.Second)))
	c.Intent = id
	return c
}

// mustTakeOver returns two claims: the first one, with pi_1 bound, and the one that took
// the order over after the first lease expired.
func (x storeTest) mustTakeOver() (lost, current order.Claim) {
	x.Helper()
	lost = x.mustBind("pi_1")
	return lost, x.mustBegin(lease("second", lost.Lease.Until.Add(time.Millisecond)))
}

// mustFinish claims the order, binds pi_1 and finishes with status s at two seconds.
func (x storeTest) mustFinish(s order.Status) order.Claim {
	x.Helper()
	c := x.mustBind("pi_1")
	x.must(x.Finish(x.Context(), c, outcome(s, "pi_1"), at(2*time.Second)))
	return c
}

func (x storeTest) mustLoad() order.Record {
	x.Helper()
	r, err := x.Load(x.Context(), x.order.ID())
	if err != nil {
		x.Fatalf("load: %v", err)
	}
	return inMillis(r)
}

func (x storeTest) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatalf("got error %v, want none", err)
	}
}

func (x storeTest) wantError(got, want error) {
	x.Helper()
	if !errors.Is(got, want) {
		x.Errorf("got error %v, want %v", got, want)
	}
}

// wantNoRecord checks that the order has no record.
func (x storeTest) wantNoRecord() {
	x.Helper()
	_, err := x.Load(x.Context(), x.order.ID())
	x.wantError(err, order.ErrNotFound)
}

// wantRecord compares the whole record, so that a write that changes another field fails.
// The store may track stock.
func (x storeTest) wantRecord(want order.Record) {
	x.Helper()
	got := x.mustLoad()
	want.Stock = got.Stock // TestStock compares it, and the due time that follows from it
	if got.Status == order.Refused && len(got.Stock) > 0 {
		want.DueAt = got.DueAt
	}
	if d := diff(got, inMillis(want)); d != "" {
		x.Errorf("wrong record:%s", d)
	}
}

// wantUnchanged checks that do does not change the record.
func (x storeTest) wantUnchanged(do func()) {
	x.Helper()
	before := x.mustLoad()
	do()
	x.wantRecord(before)
}

// dueAfter returns Record.DueAt of an order that entered s at this time.
func dueAfter(s order.Status, at time.Time) time.Time {
	if after, waits := s.RecheckAfter(); waits {
		return at.Add(after)
	}
	return time.Time{}
}

// inMillis returns r with its times in UTC and rounded down to the millisecond.
func inMillis(r order.Record) order.Record {
	times := []*time.Time{&r.Until, &r.CreatedAt, &r.UpdatedAt, &r.DueAt, &r.ParkedAt, &r.Dispute.CreatedAt}
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		times = append(times, &r.Events[i].At, &r.Events[i].Dispute.CreatedAt)
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

// diff lists the fields in which two values of one struct type differ, or returns "".
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

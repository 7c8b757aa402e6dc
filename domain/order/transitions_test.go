package order_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// step is one order in a store in memory.
type step struct {
	*testing.T
	*ordertest.Memory

	order order.Order
}

func newStep(t *testing.T) step {
	t.Helper()
	return step{t, new(ordertest.Memory), ordertest.Order("ORD-1")}
}

func after(d time.Duration) time.Time { return noon().Add(d) }

func (x step) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x step) record() order.Record {
	x.Helper()
	r, err := x.Load(x.Context(), x.order.ID())
	x.must(err)
	return r
}

func (x step) begin(owner string, from time.Time) (order.Claim, error) {
	x.Helper()
	l := order.Lease{Owner: owner, From: from, Until: from.Add(time.Minute)}
	return order.Begin(x.Context(), x, x.order, l, nil)
}

func (x step) mustBegin(owner string, from time.Time) order.Claim {
	x.Helper()
	c, err := x.begin(owner, from)
	x.must(err)
	return c
}

// bound claims the order as "first" and binds pi_1.
func (x step) bound() order.Claim {
	x.Helper()
	c := x.mustBegin("first", noon())
	x.must(c.Bind(x.Context(), x, order.Intent{ID: "pi_1", Mode: order.TestMode}, noon()))
	c.Intent = "pi_1"
	return c
}

// wantUnchanged checks the error of a step that must not change the record.
func (x step) wantUnchanged(name string, want error, do func() error) {
	x.Helper()
	before := x.record()
	if err := do(); !errors.Is(err, want) {
		x.Errorf("%s: got %v, want %v", name, err, want)
	}
	if diff := cmp.Diff(before, x.record()); diff != "" {
		x.Errorf("%s changed the record (-before +after):\n%s", name, diff)
	}
}

func paidWith(i order.IntentID) order.Outcome { return order.Outcome{Status: order.Paid, Intent: i} }

func TestTransitions(t *testing.T) {
	for claim, test := range map[string]func(step){
		"begin again by the same owner is no new attempt": step.beginsAgain,
		"begin reopens a refused order, parked or not":    step.reopens,
		"no write follows a claim that was lost":          step.lostClaim,
		"a claim binds one intent, and its outcome":       step.oneIntent,
		"release keeps the intent that an attempt found":  step.suspect,
		"settle needs the record that was seen":           step.stale,
		"a note of a dead letter changes nothing else":    step.noted,
	} {
		t.Run(claim, func(t *testing.T) {
			test(newStep(t))
		})
	}
}

func (x step) beginsAgain() {
	first := x.bound()
	x.wantUnchanged("begin", nil, func() error {
		again := x.mustBegin("first", noon())
		if again.Attempt != 1 || again.Intent != "pi_1" || !reflect.DeepEqual(again.Order, x.order) {
			x.Errorf("got claim %+v, want the first one", again)
		}
		return nil
	})
	x.must(first.Finish(x.Context(), x, paidWith("pi_1"), noon()))
}

func (x step) reopens() {
	refused := order.Outcome{Status: order.Refused, Failure: "why"}
	x.must(x.mustBegin("first", noon()).Finish(x.Context(), x, refused, noon()))
	x.must(order.NoteParked(x.Context(), x, x.order, order.ReasonRefused, noon()))
	x.mustBegin("second", noon())
	r := x.record()
	want := order.Event{Seq: 2, From: order.Refused, To: order.Open, At: noon()}
	if r.Status != order.Open || r.Failure != "" || !r.ParkedAt.IsZero() || r.Attempt != 2 || r.Events[1] != want {
		x.Errorf("got %+v, want it open with event %+v", r, want)
	}
}

func (x step) lostClaim() {
	lost := x.mustBegin("first", noon())
	current := x.mustBegin("second", after(time.Hour))
	ctx := x.Context()
	for name, do := range map[string]func() error{
		"bind":    func() error { return lost.Bind(ctx, x, order.Intent{ID: "pi_2"}, noon()) },
		"finish":  func() error { return lost.Finish(ctx, x, order.Outcome{Status: order.Canceled}, noon()) },
		"release": func() error { return lost.Release(ctx, x, order.ReasonStore, noon()) },
	} {
		x.wantUnchanged(name, order.ErrClaimLost, do)
	}
	x.must(current.Release(ctx, x, order.ReasonStore, noon()))
	x.wantUnchanged("release again", order.ErrClaimLost, func() error {
		return current.Release(ctx, x, order.ReasonStore, after(time.Second))
	})
	unknown := order.NewClaim(order.Record{Status: order.Open, Owner: "w"}, ordertest.Order("NONE"))
	if err := unknown.Bind(ctx, x, order.Intent{ID: "pi_1"}, noon()); !errors.Is(err, order.ErrClaimLost) {
		x.Errorf("bind of an unknown order: got %v, want %v", err, order.ErrClaimLost)
	}
}

func (x step) oneIntent() {
	c := x.bound()
	ctx := x.Context()
	x.wantUnchanged("the same intent", nil, func() error {
		return c.Bind(ctx, x, order.Intent{ID: "pi_1"}, after(time.Hour))
	})
	x.wantUnchanged("another intent", order.ErrClaimLost, func() error {
		return c.Bind(ctx, x, order.Intent{ID: "pi_2"}, noon())
	})
	x.wantUnchanged("the outcome of another intent", order.ErrClaimLost, func() error {
		return c.Finish(ctx, x, paidWith("pi_2"), noon())
	})
	x.wantUnchanged("the outcome of no intent", order.ErrClaimLost, func() error {
		return c.Finish(ctx, x, paidWith(""), noon())
	})
	if _, ok := errors.AsType[*order.TransitionError](c.Finish(ctx, x, order.Outcome{Status: order.Refunded}, noon())); !ok {
		x.Error("finish as refunded: want a TransitionError")
	}
	x.must(c.Finish(ctx, x, paidWith("pi_1"), noon()))
	x.wantUnchanged("the same outcome", nil, func() error { return c.Finish(ctx, x, paidWith("pi_1"), after(time.Hour)) })
}

func (x step) suspect() {
	c := x.mustBegin("first", noon())
	c.Found = "pi_1"
	x.must(c.Release(x.Context(), x, order.ReasonRecordLost, noon()))
	x.must(x.mustBegin("second", noon()).Release(x.Context(), x, order.ReasonStore, noon()))
	next := x.mustBegin("third", noon())
	if r := x.record(); r.Suspect != "pi_1" || next.Suspect != "pi_1" || r.LastError != string(order.ReasonStore) {
		x.Errorf("got %+v, want the intent that the first attempt found", r)
	}
	x.must(next.Bind(x.Context(), x, order.Intent{ID: "pi_1"}, noon()))
	if r := x.record(); r.Suspect != "" || r.Intent != "pi_1" {
		x.Errorf("bound: got %+v, want no suspect", r)
	}
}

func (x step) stale() {
	c := x.bound()
	x.must(c.Finish(x.Context(), x, order.Outcome{Status: order.Pending, Intent: "pi_1"}, noon()))
	settle := func(seen order.Record, to order.Outcome) func() error {
		return func() error { return order.Settle(x.Context(), x, seen, to, noon()) }
	}
	for name, age := range map[string]func(*order.Record){
		"status": func(r *order.Record) { r.Status = order.ActionRequired },
		"seq":    func(r *order.Record) { r.Seq++ },
		"intent": func(r *order.Record) { r.Intent = "pi_2" },
		"stock":  func(r *order.Record) { r.Stock = order.Quantities{"MUG": 1} },
	} {
		seen := x.record()
		age(&seen)
		x.wantUnchanged("settle, another "+name, order.ErrStale, settle(seen, paidWith("pi_1")))
	}
	err := settle(x.record(), order.Outcome{Status: order.Open})()
	if _, ok := errors.AsType[*order.TransitionError](err); !ok {
		x.Errorf("settle as open: got %v, want a TransitionError", err)
	}
	x.must(settle(x.record(), paidWith("pi_1"))())
}

func (x step) noted() {
	c := x.bound()
	want := x.record()
	x.must(order.NoteParked(x.Context(), x, x.order, order.ReasonUnknown, after(time.Minute)))
	want.LastError, want.ParkedAt, want.UpdatedAt = string(order.ReasonUnknown), after(time.Minute), after(time.Minute)
	if diff := cmp.Diff(want, x.record()); diff != "" {
		x.Errorf("noted (-want +got):\n%s", diff)
	}
	different := newOrder(x.T, with(func(d *order.Draft) { d.ID, d.Lines[0].Quantity = "ORD-1", 7 }))
	note := func(o order.Order) func() error {
		return func() error { return order.NoteParked(x.Context(), x, o, order.ReasonConflict, noon()) }
	}
	x.wantUnchanged("other content", nil, note(different))
	x.wantUnchanged("an unknown order", nil, note(ordertest.Order("NONE")))
	x.must(c.Finish(x.Context(), x, paidWith("pi_1"), noon()))
	if r := x.record(); !r.ParkedAt.IsZero() {
		x.Errorf("finished: got it parked at %v, want no note", r.ParkedAt)
	}
	x.wantUnchanged("a settled order", nil, note(x.order))
}

// saver is a store of numbers.
type saver func(before, after int) (int, error)

func (s saver) Save(_ context.Context, before, after int) (int, error) { return s(before, after) }

// A store in which others write for ever must not hold up its caller for ever.
func TestAChangeEndsIfOthersWriteForEver(t *testing.T) {
	saves := 0
	save := saver(func(int, int) (int, error) { saves++; return saves, order.ErrStale })
	_, err := order.Change(t.Context(), save, 0, func(seen int) (int, error) {
		if seen != saves {
			t.Errorf("decided on %d, want the %d that the last save returned", seen, saves)
		}
		return -1, nil
	})
	if !errors.Is(err, order.ErrStale) || saves < 5 || saves > 100 {
		t.Errorf("got %v after %d saves, want ErrStale after some", err, saves)
	}
	saves = 0
	if _, err := order.Change(t.Context(), save, 0, func(int) (int, error) { return 0, order.ErrUnchanged }); err != nil || saves > 0 {
		t.Errorf("nothing to write: got %v and %d saves, want none", err, saves)
	}
}

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

func after(d time.Duration) time.Time { return noon().Add(d) }

// begin claims the order for a minute.
func (w *world) begin(owner string, from time.Time) order.Claim {
	w.Helper()
	l := order.Lease{Owner: owner, From: from, Until: from.Add(time.Minute)}
	c, err := order.Begin(w.Context(), w.store, w.order, l, nil)
	w.must(err)
	return c
}

// bound claims the order as "first" and binds pi_1.
func (w *world) bound() order.Claim {
	w.Helper()
	c := w.begin("first", noon())
	w.must(c.Bind(w.Context(), w.store, order.Intent{ID: "pi_1", Mode: order.TestMode}, noon()))
	c.Intent = "pi_1"
	return c
}

// wantUnchanged checks the error of a step that must not change the record.
func (w *world) wantUnchanged(name string, want error, do func() error) {
	w.Helper()
	before := w.record()
	if err := do(); !errors.Is(err, want) {
		w.Errorf("%s: got %v, want %v", name, err, want)
	}
	if diff := cmp.Diff(before, w.record()); diff != "" {
		w.Errorf("%s changed the record (-before +after):\n%s", name, diff)
	}
}

func paidWith(i order.IntentID) order.Outcome { return order.Outcome{Status: order.Paid, Intent: i} }

func TestTransitions(t *testing.T) {
	for claim, test := range map[string]func(*world){
		"begin again by the same owner is no new attempt": (*world).beginsAgain,
		"begin reopens a refused order, parked or not":    (*world).reopens,
		"no write follows a claim that was lost":          (*world).lostClaim,
		"a claim binds one intent, and its outcome":       (*world).oneIntent,
		"release keeps the intent that an attempt found":  (*world).suspect,
		"settle needs the record that was seen":           (*world).stale,
		"a note of a dead letter changes nothing else":    (*world).noted,
	} {
		t.Run(claim, func(t *testing.T) {
			test(newWorld(t, ordertest.Pays))
		})
	}
}

func (w *world) beginsAgain() {
	first := w.bound()
	w.wantUnchanged("begin", nil, func() error {
		again := w.begin("first", noon())
		if again.Attempt != 1 || again.Intent != "pi_1" || !reflect.DeepEqual(again.Order, w.order) {
			w.Errorf("got claim %+v, want the first one", again)
		}
		return nil
	})
	w.must(first.Finish(w.Context(), w.store, paidWith("pi_1"), noon()))
}

func (w *world) reopens() {
	refused := order.Outcome{Status: order.Refused, Failure: "why"}
	w.must(w.begin("first", noon()).Finish(w.Context(), w.store, refused, noon()))
	w.must(order.NoteParked(w.Context(), w.store, w.order, order.ReasonRefused, noon()))
	w.begin("second", noon())
	r := w.record()
	want := order.Event{Seq: 2, From: order.Refused, To: order.Open, At: noon()}
	if r.Status != order.Open || r.Failure != "" || !r.ParkedAt.IsZero() || r.Attempt != 2 || r.Events[1] != want {
		w.Errorf("got %+v, want it open with event %+v", r, want)
	}
}

func (w *world) lostClaim() {
	lost := w.begin("first", noon())
	current := w.begin("second", after(time.Hour))
	ctx := w.Context()
	for name, do := range map[string]func() error{
		"bind":    func() error { return lost.Bind(ctx, w.store, order.Intent{ID: "pi_2"}, noon()) },
		"finish":  func() error { return lost.Finish(ctx, w.store, order.Outcome{Status: order.Canceled}, noon()) },
		"release": func() error { return lost.Release(ctx, w.store, order.ReasonStore, noon()) },
	} {
		w.wantUnchanged(name, order.ErrClaimLost, do)
	}
	w.must(current.Release(ctx, w.store, order.ReasonStore, noon()))
	w.wantUnchanged("release again", order.ErrClaimLost, func() error {
		return current.Release(ctx, w.store, order.ReasonStore, after(time.Second))
	})
	unknown := order.NewClaim(order.Record{Status: order.Open, Owner: "w"}, ordertest.Order("NONE"))
	if err := unknown.Bind(ctx, w.store, order.Intent{ID: "pi_1"}, noon()); !errors.Is(err, order.ErrClaimLost) {
		w.Errorf("bind of an unknown order: got %v, want %v", err, order.ErrClaimLost)
	}
}

func (w *world) oneIntent() {
	c := w.bound()
	ctx := w.Context()
	w.wantUnchanged("the same intent", nil, func() error {
		return c.Bind(ctx, w.store, order.Intent{ID: "pi_1"}, after(time.Hour))
	})
	w.wantUnchanged("another intent", order.ErrClaimLost, func() error {
		return c.Bind(ctx, w.store, order.Intent{ID: "pi_2"}, noon())
	})
	w.wantUnchanged("the outcome of another intent", order.ErrClaimLost, func() error {
		return c.Finish(ctx, w.store, paidWith("pi_2"), noon())
	})
	w.wantUnchanged("the outcome of no intent", order.ErrClaimLost, func() error {
		return c.Finish(ctx, w.store, paidWith(""), noon())
	})
	if _, ok := errors.AsType[*order.TransitionError](c.Finish(ctx, w.store, order.Outcome{Status: order.Refunded}, noon())); !ok {
		w.Error("finish as refunded: want a TransitionError")
	}
	w.must(c.Finish(ctx, w.store, paidWith("pi_1"), noon()))
	w.wantUnchanged("the same outcome", nil, func() error { return c.Finish(ctx, w.store, paidWith("pi_1"), after(time.Hour)) })
}

func (w *world) suspect() {
	c := w.begin("first", noon())
	c.Found = "pi_1"
	w.must(c.Release(w.Context(), w.store, order.ReasonRecordLost, noon()))
	w.must(w.begin("second", noon()).Release(w.Context(), w.store, order.ReasonStore, noon()))
	next := w.begin("third", noon())
	if r := w.record(); r.Suspect != "pi_1" || next.Suspect != "pi_1" || r.LastError != string(order.ReasonStore) {
		w.Errorf("got %+v, want the intent that the first attempt found", r)
	}
	w.must(next.Bind(w.Context(), w.store, order.Intent{ID: "pi_1"}, noon()))
	if r := w.record(); r.Suspect != "" || r.Intent != "pi_1" {
		w.Errorf("bound: got %+v, want no suspect", r)
	}
}

func (w *world) stale() {
	c := w.bound()
	w.must(c.Finish(w.Context(), w.store, order.Outcome{Status: order.Pending, Intent: "pi_1"}, noon()))
	settle := func(seen order.Record, to order.Outcome) func() error {
		return func() error { return order.Settle(w.Context(), w.store, seen, to, noon()) }
	}
	for name, age := range map[string]func(*order.Record){
		"status": func(r *order.Record) { r.Status = order.ActionRequired },
		"seq":    func(r *order.Record) { r.Seq++ },
		"intent": func(r *order.Record) { r.Intent = "pi_2" },
		"stock":  func(r *order.Record) { r.Stock = order.Quantities{"MUG": 1} },
	} {
		seen := w.record()
		age(&seen)
		w.wantUnchanged("settle, another "+name, order.ErrStale, settle(seen, paidWith("pi_1")))
	}
	err := settle(w.record(), order.Outcome{Status: order.Open})()
	if _, ok := errors.AsType[*order.TransitionError](err); !ok {
		w.Errorf("settle as open: got %v, want a TransitionError", err)
	}
	seen := w.record()
	w.must(settle(seen, paidWith("pi_1"))())
	w.wantUnchanged("settle again", nil, func() error {
		return order.Settle(w.Context(), w.store, seen, paidWith("pi_1"), after(time.Hour))
	})
}

func (w *world) noted() {
	c := w.bound()
	want := w.record()
	w.must(order.NoteParked(w.Context(), w.store, w.order, order.ReasonUnknown, after(time.Minute)))
	want.LastError, want.ParkedAt, want.UpdatedAt = string(order.ReasonUnknown), after(time.Minute), after(time.Minute)
	if diff := cmp.Diff(want, w.record()); diff != "" {
		w.Errorf("noted (-want +got):\n%s", diff)
	}
	different := newOrder(w.T, with(func(d *order.Draft) { d.ID, d.Lines[0].Quantity = "ORD-1", 7 }))
	note := func(o order.Order) func() error {
		return func() error { return order.NoteParked(w.Context(), w.store, o, order.ReasonConflict, noon()) }
	}
	w.wantUnchanged("other content", nil, note(different))
	w.wantUnchanged("an unknown order", nil, note(ordertest.Order("NONE")))
	w.must(c.Finish(w.Context(), w.store, paidWith("pi_1"), noon()))
	if r := w.record(); !r.ParkedAt.IsZero() {
		w.Errorf("finished: got it parked at %v, want no note", r.ParkedAt)
	}
	w.wantUnchanged("a settled order", nil, note(w.order))
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

package settle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// wantUnchanged checks the error of a write that must not change ORD-1.
func (w *world) wantUnchanged(name string, want error, do func() error) {
	w.Helper()
	before := w.record("ORD-1")
	if err := do(); !errors.Is(err, want) {
		w.Errorf("%s: got %v, want %v", name, err, want)
	}
	if diff := cmp.Diff(before, w.record("ORD-1")); diff != "" {
		w.Errorf("%s changed the record (-before +after):\n%s", name, diff)
	}
}

func TestADisputeAndAPostponeNeedTheRecordThatWasSeen(t *testing.T) {
	w := newWorld(t)
	w.deliver("ORD-1", ordertest.TakesDays, "")
	ctx, later := t.Context(), w.now.Add(time.Hour)
	dispute := func(seen order.Record) func() error {
		d := order.Dispute{ID: "du_1", Status: order.DisputeOpen}
		return func() error { return settle.RecordDispute(ctx, w.store, seen, d, later) }
	}
	first := w.record("ORD-1")
	for name, change := range map[string]func(*order.Record){
		"status": func(r *order.Record) { r.Status = order.ActionRequired },
		"seq":    func(r *order.Record) { r.Seq++ },
		"intent": func(r *order.Record) { r.Intent = "pi_2" },
		"stock":  func(r *order.Record) { r.Stock = order.Quantities{"MUG": 1} },
	} {
		seen := first
		change(&seen)
		w.wantUnchanged("dispute, another "+name, order.ErrStale, dispute(seen))
		w.wantUnchanged("postpone, another "+name, order.ErrStale, func() error {
			return settle.Postpone(ctx, w.store, seen, later)
		})
	}
	w.must(dispute(first)())
	w.wantUnchanged("a dispute that is recorded", nil, dispute(first))
	w.wantUnchanged("a dispute that was seen", nil, dispute(w.record("ORD-1")))
}

func TestALostRecordIsRecreatedWithItsIntent(t *testing.T) {
	w := newWorld(t)
	ctx, o, later := t.Context(), ordertest.Order("ORD-1"), w.now.Add(time.Hour)
	lost := order.Record{
		OrderID: "ORD-1", Total: o.Total(), Fingerprint: o.Fingerprint(), Intent: "pi_1", Mode: order.TestMode,
	}
	recreate := func() error { return settle.Recreate(ctx, w.store, lost, later) }
	begin := func(from time.Time) order.Claim {
		l := order.Lease{Owner: "worker", From: from, Until: from.Add(time.Minute)}
		c, err := order.Begin(ctx, w.store, o, l, nil)
		w.must(err)
		return c
	}
	w.must(recreate())
	want := lost
	want.Status, want.Attempt, want.CreatedAt, want.UpdatedAt = order.Open, 1, later, later
	want.DueAt = later.Add(15 * time.Minute)
	if diff := cmp.Diff(want, w.record("ORD-1")); diff != "" {
		t.Errorf("recreated (-want +got):\n%s", diff)
	}
	w.wantUnchanged("again", nil, recreate)
	c := begin(later.Add(time.Hour))
	if c.Attempt != 2 || c.Intent != "pi_1" || w.record("ORD-1").CustomerID == "" {
		t.Errorf("got claim %+v, want attempt 2 with pi_1 and its customer", c)
	}
	w.store.Delete("ORD-1")
	c = begin(w.now)
	w.must(recreate())
	if err := c.Release(ctx, w.store, order.ReasonStore, w.now); !errors.Is(err, order.ErrClaimLost) {
		t.Errorf("release of the claim that expired: got %v, want %v", err, order.ErrClaimLost)
	}
	w.store.Delete("ORD-1")
	begin(later)
	w.wantUnchanged("under a running lease", nil, func() error {
		err := recreate()
		if _, running := errors.AsType[*order.InProgressError](err); !running {
			t.Errorf("under a running lease: got %v, want an *InProgressError", err)
		}
		return nil
	})
}

// A message with other content came after the record was lost.
func TestALostRecordReplacesAnUnboundOneOfOtherContent(t *testing.T) {
	w := newWorld(t)
	ctx, later := t.Context(), w.now.Add(time.Hour)
	lost := order.Record{OrderID: "ORD-1", Total: order.Money{Amount: 5, Currency: "eur"}, Fingerprint: "v1:lost", Intent: "pi_1"}
	recreate := func() error { return settle.Recreate(ctx, w.store, lost, later) }
	l := order.Lease{Owner: "worker", From: w.now, Until: w.now.Add(time.Minute)}
	_, err := order.Begin(ctx, w.store, ordertest.Order("ORD-1"), l, nil)
	w.must(err)
	w.must(order.NoteParked(ctx, w.store, ordertest.Order("ORD-1"), order.ReasonKeyReused, w.now))
	w.must(recreate())
	want := lost
	want.Status, want.Attempt, want.CreatedAt, want.UpdatedAt, want.DueAt = order.Open, 1, later, later, later.Add(15*time.Minute)
	if diff := cmp.Diff(want, w.record("ORD-1")); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
	for version, want := range map[order.Fingerprint]error{"v1:third": order.ErrConflict, "v2:third": order.ErrUnknownVersion} {
		lost.Fingerprint = version
		w.wantUnchanged("a record with an intent", want, recreate)
	}
}

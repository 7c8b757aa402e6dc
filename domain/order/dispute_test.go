package order_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// disputeFollower returns a Follower that adds the names of its calls to calls.
func (w *world) disputeFollower(calls *[]string) *settle.Follower {
	return &settle.Follower{
		Store: w.counted(calls), Payments: w.counted(calls), Scope: "test",
		Now: func() time.Time { return w.now }, Disputes: countedDisputes{w.bank, calls},
	}
}

type countedDisputes struct {
	next  settle.Disputes
	calls *[]string
}

func (d countedDisputes) Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
	*d.calls = append(*d.calls, "list")
	return d.next.Disputes(ctx, id)
}

// types returns what the order's events name.
func (w *world) types() (all []string) {
	for _, e := range w.record().Events {
		if err := e.Validate(); err != nil {
			w.Errorf("event %d: %v", e.Seq, err)
		}
		all = append(all, e.Type())
	}
	return all
}

// disputed is the hint of a webhook about a dispute.
func disputed() settle.Hint { return settle.Hint{Intent: "pi_1", Status: order.Paid, Disputed: true} }

func TestFollowADispute(t *testing.T) {
	t.Parallel()
	deliver := func(w *world) { w.deliver(noFault) }
	dispute := func(w *world) { deliver(w); w.bank.Dispute("pi_1") }
	end := func(s order.DisputeStatus) func(*world) {
		return func(w *world) { dispute(w); w.bank.CloseDispute("du_1", s) }
	}
	follow := func(before func(*world)) func(*world) {
		return func(w *world) {
			before(w)
			if _, _, err := w.disputeFollower(new([]string)).Follow(w.Context(), disputed()); err != nil {
				w.Fatal(err)
			}
		}
	}
	recorded, shown := []string{"read", "load", "list", "dispute"}, []string{"read", "load", "list"}
	settledFirst := []string{"read", "load", "read", "finish", "load", "list", "dispute"}
	for claim, tt := range map[string]struct {
		card   ordertest.Card
		before func(w *world)
		hint   settle.Hint
		want   settle.Followed
		calls  []string
		events []string
	}{
		"an open dispute is recorded": {
			ordertest.Pays, dispute, disputed(), settle.HintDisputed, recorded, []string{"order.paid", "order.disputed"},
		},
		"a dispute that the record shows is not written again": {
			ordertest.Pays, follow(dispute), disputed(), settle.HintAgrees, shown, []string{"order.paid", "order.disputed"},
		},
		"a dispute that was lost is another event": {
			ordertest.Pays, func(w *world) { follow(dispute)(w); w.bank.CloseDispute("du_1", order.DisputeLost) },
			disputed(), settle.HintDisputeClosed, recorded,
			[]string{"order.paid", "order.disputed", "order.dispute_lost"},
		},
		"a dispute that ended before the first look is recorded as won": {
			ordertest.Pays, end(order.DisputeWon), disputed(), settle.HintDisputeClosed, recorded,
			[]string{"order.paid", "order.dispute_won"},
		},
		"a second dispute replaces the first": {
			ordertest.Pays, func(w *world) { follow(end(order.DisputeWon))(w); w.bank.Dispute("pi_1") },
			disputed(), settle.HintDisputed, recorded,
			[]string{"order.paid", "order.dispute_won", "order.disputed"},
		},
		"an older dispute does not replace the newest": {
			ordertest.Pays, func(w *world) {
				follow(func(w *world) { dispute(w); w.bank.Dispute("pi_1") })(w)
				w.bank.CloseDispute("du_1", order.DisputeLost)
			},
			disputed(), settle.HintAgrees, shown,
			[]string{"order.paid", "order.disputed"},
		},
		"a hint of a dispute is not believed": {
			ordertest.Pays, deliver, disputed(), settle.HintAgrees, shown, []string{"order.paid"},
		},
		"a disputed order under a running lease is settled first": {
			ordertest.Pays, func(w *world) {
				w.crashAfter(ordertest.Confirm)
				w.now = w.record().Until
				w.bank.Dispute("pi_1")
			},
			disputed(), settle.HintDisputed, settledFirst,
			[]string{"order.paid", "order.disputed"},
		},
		"a disputed order that was pending is settled first": {
			ordertest.TakesDays, func(w *world) { deliver(w); w.bank.Clear("pi_1"); w.bank.Dispute("pi_1") },
			disputed(), settle.HintDisputed, settledFirst,
			[]string{"order.pending", "order.paid", "order.disputed"},
		},
		"another hint does not ask for disputes": {
			ordertest.Pays, dispute,
			settle.Hint{Intent: "pi_1", Status: order.Paid},
			settle.HintAgrees,
			[]string{"read", "load"},
			[]string{"order.paid"},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.card)
			tt.before(w)
			var calls []string
			got, _, err := w.disputeFollower(&calls).Follow(t.Context(), tt.hint)
			if err != nil || got != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
			if diff := cmp.Diff(calls, tt.calls); diff != "" {
				t.Errorf("calls (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(w.types(), tt.events); diff != "" {
				t.Errorf("events (-got +want):\n%s", diff)
			}
			if v := w.violations(); v != "" {
				t.Error(v)
			}
		})
	}
}

// Each error means that the hint must come again.
func TestFollowADisputeErrors(t *testing.T) {
	t.Parallel()
	stale := func(w *world, f *settle.Follower) { // another hint records more between list and write
		f.Disputes = listThen{w.bank, func() {
			w.bank.CloseDispute("du_1", order.DisputeLost)
			if _, _, err := w.disputeFollower(new([]string)).Follow(w.Context(), disputed()); err != nil {
				w.Error(err)
			}
		}}
	}
	for claim, tt := range map[string]struct {
		hint     settle.Hint
		sabotage func(w *world, f *settle.Follower)
		want     string
		shows    order.DisputeStatus // by the record, afterwards
	}{
		"the provider does not list them": {disputed(), func(w *world, _ *settle.Follower) {
			w.bank.Fail(ordertest.ListDisputes, ordertest.ReturnsUnavailable)
		}, "list disputes of order ORD-1: unavailable: the bank rejected the call, or a fault was injected (request req_4)", ""},
		"the list is older than the record": {
			disputed(), stale, "record dispute of order \"ORD-1\": concurrent update of the record", order.DisputeLost,
		},
		"the record is missing": {disputed(), func(w *world, _ *settle.Follower) {
			w.store.Delete(w.order.ID())
			w.attempts = 0
		}, "load order ORD-1: order not found", ""},
		"money that another intent took": {
			settle.Hint{OrderID: "ORD-1", Intent: "pi_2", Status: order.Paid, Disputed: true},
			nil,
			`intent pi_2: intent is "pi_2", want "pi_1"`, "",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			w.deliver(noFault)
			w.bank.Dispute("pi_1")
			f := w.disputeFollower(new([]string))
			if tt.sabotage != nil {
				tt.sabotage(w, f)
			}
			got, _, err := f.Follow(t.Context(), tt.hint)
			if err == nil || err.Error() != tt.want || got != "" {
				t.Errorf("got %q, %v, want %s", got, err, tt.want)
			}
			r, err := w.store.Load(t.Context(), w.order.ID())
			if err != nil && !errors.Is(err, order.ErrNotFound) || r.Dispute.Status != tt.shows {
				t.Errorf("got record with dispute %+v, %v, want status %q", r.Dispute, err, tt.shows)
			}
		})
	}
}

// reversed lists the oldest dispute first.
type reversed struct{ next settle.Disputes }

func (d reversed) Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
	all, err := d.next.Disputes(ctx, id)
	slices.Reverse(all)
	return all, err
}

// unlisted lists no dispute.
type unlisted struct{}

func (unlisted) Disputes(context.Context, order.IntentID) ([]order.Dispute, error) { return nil, nil }

func TestTheNewestDisputeIsRecordedHoweverTheyAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	w.deliver(noFault)
	w.bank.Dispute("pi_1")
	newest := w.bank.Dispute("pi_1")
	f := w.disputeFollower(new([]string))
	for _, list := range []settle.Disputes{w.bank, reversed{w.bank}, unlisted{}} {
		f.Disputes = list
		if _, _, err := f.Follow(t.Context(), disputed()); err != nil {
			t.Fatal(err)
		}
		if got := w.record(); got.Dispute.ID != newest || got.Seq != 2 {
			t.Errorf("got dispute %s and seq %d, want %s and one event", got.Dispute.ID, got.Seq, newest)
		}
	}
}

// listThen returns the disputes as they were before then ran.
type listThen struct {
	next settle.Disputes
	then func()
}

func (d listThen) Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
	all, err := d.next.Disputes(ctx, id)
	d.then()
	return all, err
}

func TestAnEventIsATransitionOrADispute(t *testing.T) {
	t.Parallel()
	won := order.Dispute{ID: "du_1", Status: order.DisputeWon}
	for claim, tt := range map[string]struct {
		event order.Event
		kind  string
		valid bool
	}{
		"a transition":                     {order.Event{From: order.Open, To: order.Paid}, "order.paid", true},
		"an invalid transition":            {order.Event{From: order.Paid, To: order.Open}, "order.open", false},
		"no change and no dispute":         {order.Event{From: order.Paid, To: order.Paid}, "order.paid", false},
		"a dispute":                        {order.Event{From: order.Paid, To: order.Paid, Dispute: won}, "order.dispute_won", true},
		"a dispute that settles the order": {order.Event{From: order.Open, To: order.Paid, Dispute: won}, "order.dispute_won", false},
	} {
		if got := tt.event.Type(); got != tt.kind {
			t.Errorf("%s: got type %s, want %s", claim, got, tt.kind)
		}
		if err := tt.event.Validate(); (err == nil) != tt.valid {
			t.Errorf("%s: got %v, want it valid: %t", claim, err, tt.valid)
		}
	}
}

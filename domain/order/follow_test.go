package order_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// lister is a provider's list of disputes.
type lister func(context.Context, order.IntentID) ([]order.Dispute, error)

func (l lister) Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
	return l(ctx, id)
}

// follower returns a Follower that adds the names of its calls to calls.
func (w *world) follower(calls *[]string) *settle.Follower {
	return &settle.Follower{
		Store: w.counted(calls), Payments: w.counted(calls), Scope: "test", Now: func() time.Time { return w.now },
		Disputes: lister(func(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
			*calls = append(*calls, "list")
			return w.bank.Disputes(ctx, id)
		}),
	}
}

// mustFollow follows the hint of a webhook about a dispute.
func (w *world) mustFollow(ctx context.Context) {
	w.Helper()
	if _, _, err := w.follower(new([]string)).Follow(ctx, disputed()); err != nil {
		w.Fatal(err)
	}
}

// types returns what the order's events name.
func (w *world) types() string {
	var all []string
	for _, e := range w.record().Events {
		if err := e.Validate(); err != nil {
			w.Errorf("event %d: %v", e.Seq, err)
		}
		all = append(all, strings.TrimPrefix(e.Type(), "order."))
	}
	return strings.Join(all, " ")
}

// disputed is the hint of a webhook about a dispute.
func disputed() settle.Hint { return settle.Hint{Intent: "pi_1", Status: order.Paid, Disputed: true} }

// followCase is a hint about an order that was paid with this card.
type followCase struct {
	card   ordertest.Card
	before func(w *world)
	hint   settle.Hint
	want   settle.Followed
	calls  string
	events string // of the order, afterwards
}

func TestFollow(t *testing.T) {
	t.Parallel()
	for _, cases := range []map[string]followCase{followCases(), disputeCases()} {
		for claim, tt := range cases {
			t.Run(claim, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, tt.card)
				tt.before(w)
				var calls []string
				got, _, err := w.follower(&calls).Follow(w.Context(), tt.hint)
				if err != nil || got != tt.want || w.types() != tt.events {
					t.Errorf("got %s, %v and events %q, want %s and %q", got, err, w.types(), tt.want, tt.events)
				}
				if got := strings.Join(calls, " "); got != tt.calls {
					t.Errorf("got calls %q, want %q", got, tt.calls)
				}
				if v := w.violations(); v != "" {
					t.Error(v)
				}
			})
		}
	}
}

func followCases() map[string]followCase {
	hint := func(s order.Status) settle.Hint {
		return settle.Hint{OrderID: "ORD-1", Scope: "test", Intent: "pi_1", Status: s}
	}
	deliver := func(w *world) { w.deliver(noFault) }
	clears := func(w *world) { deliver(w); w.bank.Clear("pi_1") }
	leased := func(w *world) { w.crashAfter(ordertest.Confirm); w.now = w.record().Until }
	const settles = "load read finish"
	return map[string]followCase{
		"a paid order agrees with a hint that it is paid": {
			ordertest.Pays, deliver, hint(order.Paid), settle.HintAgrees, "load", "paid",
		},
		"a paid order agrees with an older hint": {
			ordertest.Pays, deliver, hint(order.Pending), settle.HintAgrees, "load", "paid",
		},
		"an order that the customer authenticated is settled": {
			ordertest.NeedsAuthentication, func(w *world) { deliver(w); w.bank.CustomerPays("pi_1") },
			hint(order.Paid), settle.HintSettled, settles, "action_required paid",
		},
		"a pending order that cleared is settled": {
			ordertest.TakesDays, clears, hint(order.Paid), settle.HintSettled, settles, "pending paid",
		},
		"a hint is not believed": {
			ordertest.TakesDays, deliver, hint(order.Paid), settle.HintUnchanged, "load read", "pending",
		},
		"the provider's word counts, not the hint's": {
			ordertest.TakesDays, func(w *world) { deliver(w); w.bank.Cancel("pi_1") },
			hint(order.Paid), settle.HintSettled, settles, "pending canceled",
		},
		"a hint without a status is read": {
			ordertest.TakesDays, deliver, hint(""), settle.HintUnchanged, "load read", "pending",
		},
		"an order of a crashed worker is settled": {
			ordertest.Pays, crashAfter(ordertest.Confirm), hint(order.Paid), settle.HintSettled, settles, "paid",
		},
		"an order under a running lease is left to its worker": {
			ordertest.Pays, leased, hint(order.Paid), settle.HintLeased, "load", "",
		},
		"an order without an intent waits for its message": {
			ordertest.Pays, crashAfter(ordertest.Begin),
			settle.Hint{OrderID: "ORD-1"},
			settle.HintNoIntent,
			"load", "",
		},
		"a canceled intent of another attempt is unbound": {
			ordertest.Pays, deliver,
			settle.Hint{OrderID: "ORD-1", Intent: "pi_2", Status: order.Canceled},
			settle.HintUnbound, "load", "paid",
		},
		"another scope is foreign": {
			ordertest.Pays, deliver,
			settle.Hint{OrderID: "ORD-1", Scope: "other", Intent: "pi_1", Disputed: true},
			settle.HintForeign, "", "paid",
		},
		"a hint without an order is read first": {
			ordertest.TakesDays, clears,
			settle.Hint{Intent: "pi_1"},
			settle.HintSettled,
			"read load read finish", "pending paid",
		},
	}
}

func disputeCases() map[string]followCase {
	deliver := func(w *world) { w.deliver(noFault) }
	dispute := func(w *world) { deliver(w); w.bank.Dispute("pi_1") }
	won := func(w *world) { dispute(w); w.bank.CloseDispute("du_1", order.DisputeWon) }
	const recorded, shown = "read load list dispute", "read load list"
	const settledFirst = "read load read finish load list dispute"
	return map[string]followCase{
		"an open dispute is recorded": {
			ordertest.Pays, dispute, disputed(), settle.HintDisputed, recorded, "paid disputed",
		},
		"a dispute that the record shows is not written again": {
			ordertest.Pays, func(w *world) { dispute(w); w.mustFollow(w.Context()) }, disputed(), settle.HintAgrees, shown, "paid disputed",
		},
		"a dispute that was lost is another event": {
			ordertest.Pays, func(w *world) { dispute(w); w.mustFollow(w.Context()); w.bank.CloseDispute("du_1", order.DisputeLost) },
			disputed(), settle.HintDisputeClosed, recorded, "paid disputed dispute_lost",
		},
		"a dispute that ended before the first hint is recorded as won": {
			ordertest.Pays, won, disputed(), settle.HintDisputeClosed, recorded, "paid dispute_won",
		},
		"a second dispute replaces the first": {
			ordertest.Pays, func(w *world) { won(w); w.mustFollow(w.Context()); w.bank.Dispute("pi_1") },
			disputed(), settle.HintDisputed, recorded, "paid dispute_won disputed",
		},
		"an older dispute does not replace the newest": {
			ordertest.Pays, func(w *world) {
				dispute(w)
				w.bank.Dispute("pi_1")
				w.mustFollow(w.Context())
				w.bank.CloseDispute("du_1", order.DisputeLost)
			},
			disputed(), settle.HintAgrees, shown, "paid disputed",
		},
		"a hint of a dispute is not believed": {
			ordertest.Pays, deliver, disputed(), settle.HintAgrees, shown, "paid",
		},
		"a disputed order under a running lease is settled first": {
			ordertest.Pays, func(w *world) {
				w.crashAfter(ordertest.Confirm)
				w.now = w.record().Until
				w.bank.Dispute("pi_1")
			},
			disputed(), settle.HintDisputed, settledFirst, "paid disputed",
		},
		"a disputed order that was pending is settled first": {
			ordertest.TakesDays, func(w *world) { deliver(w); w.bank.Clear("pi_1"); w.bank.Dispute("pi_1") },
			disputed(), settle.HintDisputed, settledFirst, "pending paid disputed",
		},
		"another hint does not ask for disputes": {
			ordertest.Pays, dispute,
			settle.Hint{Intent: "pi_1", Status: order.Paid},
			settle.HintAgrees,
			"read load", "paid",
		},
	}
}

// Each error means that the hint must come again.
func TestFollowErrors(t *testing.T) {
	t.Parallel()
	const rejected = "the bank rejected the call, or a fault was injected"
	for claim, tt := range map[string]struct {
		hint  settle.Hint
		fails func(w *world, f *settle.Follower)
		want  string
		shows order.DisputeStatus // by the record, afterwards
	}{
		"a missing record": {settle.Hint{OrderID: "ORD-2"}, nil, "load order ORD-2: order not found", ""},
		"money that another intent took": {
			settle.Hint{OrderID: "ORD-1", Intent: "pi_2", Status: order.Paid, Disputed: true},
			nil,
			`intent pi_2: intent is "pi_2", want "pi_1"`, "",
		},
		"an intent that the provider does not know": {
			settle.Hint{Intent: "pi_9"}, nil, "read intent pi_9: misconfigured: " + rejected + " (request req_3)", "",
		},
		"the provider does not list disputes": {
			disputed(), func(w *world, _ *settle.Follower) {
				w.bank.Fail(ordertest.ListDisputes, ordertest.ReturnsUnavailable)
			}, "list disputes of order ORD-1: unavailable: " + rejected + " (request req_4)", "",
		},
		"the list of disputes is older than the record": {
			disputed(), func(w *world, f *settle.Follower) { // another hint records more between list and write
				f.Disputes = lister(func(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
					all, err := w.bank.Disputes(ctx, id)
					w.bank.CloseDispute("du_1", order.DisputeLost)
					w.mustFollow(ctx)
					return all, err
				})
			}, `record dispute of order "ORD-1": concurrent update of the record`, order.DisputeLost,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			w.deliver(noFault)
			w.bank.Dispute("pi_1")
			f := w.follower(new([]string))
			if tt.fails != nil {
				tt.fails(w, f)
			}
			got, _, err := f.Follow(t.Context(), tt.hint)
			if fmt.Sprint(err) != tt.want || got != "" || w.record().Dispute.Status != tt.shows {
				t.Errorf("got %q, %v and dispute %+v, want %s and %q", got, err, w.record().Dispute, tt.want, tt.shows)
			}
		})
	}
}

func TestTheNewestDisputeIsRecordedHoweverTheyAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	w.deliver(noFault)
	w.bank.Dispute("pi_1")
	newest := w.bank.Dispute("pi_1")
	f := w.follower(new([]string))
	oldestFirst := lister(func(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
		all, err := w.bank.Disputes(ctx, id)
		slices.Reverse(all)
		return all, err
	})
	none := lister(func(context.Context, order.IntentID) ([]order.Dispute, error) { return nil, nil })
	for _, f.Disputes = range []settle.Disputes{w.bank, oldestFirst, none} {
		if _, _, err := f.Follow(t.Context(), disputed()); err != nil {
			t.Fatal(err)
		}
		if got := w.record(); got.Dispute.ID != newest || got.Seq != 2 {
			t.Errorf("got dispute %s and seq %d, want %s and one event", got.Dispute.ID, got.Seq, newest)
		}
	}
}

func TestFollowTriesAgainIfTheRecordChanged(t *testing.T) {
	t.Parallel()
	for changes, want := range []error{nil, nil, order.ErrStale} {
		w := newWorld(t, ordertest.TakesDays)
		w.deliver(noFault)
		w.bank.Clear("pi_1")
		f := w.follower(new([]string))
		f.Store = &staleStore{w.store, changes}
		if _, _, err := f.Follow(w.Context(), settle.Hint{OrderID: "ORD-1", Intent: "pi_1"}); !errors.Is(err, want) {
			t.Errorf("%d changes: got %v, want %v", changes, err, want)
		}
	}
}

package settle_test

import (
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

// disputed is the hint of a webhook about a dispute.
func disputed() settle.Hint { return settle.Hint{Intent: "pi_1", Status: order.Paid, Disputed: true} }

// follow follows the hint of a webhook about a dispute.
func (w *world) follow() {
	w.Helper()
	f := settle.Follower{Store: w.store, Payments: w.bank, Disputes: w.bank, Scope: "test", Now: w.clock}
	_, _, err := f.Follow(w.Context(), disputed())
	w.must(err)
}

// types returns what the events of ORD-1 name.
func (w *world) types() string {
	var all []string
	for _, e := range w.record("ORD-1").Events {
		if err := e.Validate(); err != nil {
			w.Errorf("event %d: %v", e.Seq, err)
		}
		all = append(all, strings.TrimPrefix(e.Type(), "order."))
	}
	return strings.Join(all, " ")
}

// followCase is a hint about ORD-1, which was delivered up to the last call an hour ago.
type followCase struct {
	card   ordertest.Card
	last   ordertest.Call
	before func(w *world)
	hint   settle.Hint
	want   settle.Followed
	calls  string
	events string // of the order, afterwards
}

func TestFollow(t *testing.T) {
	for _, cases := range []map[string]followCase{followCases(), disputeCases()} {
		for claim, tt := range cases {
			t.Run(claim, func(t *testing.T) {
				w := newWorld(t)
				w.deliver("ORD-1", tt.card, tt.last)
				w.wait(time.Hour)
				if tt.before != nil {
					tt.before(w)
				}
				f := w.follower()
				got, _, err := f.Follow(t.Context(), tt.hint)
				if err != nil || got != tt.want || w.types() != tt.events {
					t.Errorf("got %s, %v and events %q, want %s and %q", got, err, w.types(), tt.want, tt.events)
				}
				if got := strings.Join(w.calls, " "); got != tt.calls {
					t.Errorf("got calls %q, want %q", got, tt.calls)
				}
			})
		}
	}
}

func followCases() map[string]followCase {
	const (
		pays, days = ordertest.Pays, ordertest.TakesDays
		dies       = ordertest.Confirm
		settles    = "load read finish"
	)
	hint := func(s order.Status) settle.Hint {
		return settle.Hint{OrderID: "ORD-1", Scope: "test", Intent: "pi_1", Status: s}
	}
	clears := func(w *world) { w.bank.Clear("pi_1") }
	cancels := func(w *world) { w.bank.Cancel("pi_1") }
	leased := func(w *world) { w.now = w.record("ORD-1").Until }
	scoped := func(s order.Scope, id order.ID) func(w *world) {
		return func(w *world) { w.change = func(i *order.Intent) { i.Scope, i.OrderID = s, id } }
	}
	other := settle.Hint{OrderID: "ORD-1", Scope: "other", Intent: "pi_1", Disputed: true}
	unbound := settle.Hint{OrderID: "ORD-1", Intent: "pi_2", Status: order.Canceled}
	onlyOrder, onlyIntent := settle.Hint{OrderID: "ORD-1"}, settle.Hint{Intent: "pi_1"}
	return map[string]followCase{
		"a paid order agrees with a hint that it is paid": {
			pays, "", nil, hint(order.Paid), settle.HintAgrees, "load", "paid",
		},
		"a paid order agrees with an older hint": {
			pays, "", nil, hint(order.Pending), settle.HintAgrees, "load", "paid",
		},
		"an order that the customer authenticated is settled": {
			ordertest.NeedsAuthentication, "", func(w *world) { w.bank.CustomerPays("pi_1") },
			hint(order.Paid), settle.HintSettled, settles, "action_required paid",
		},
		"a pending order that cleared is settled": {
			days, "", clears, hint(order.Paid), settle.HintSettled, settles, "pending paid",
		},
		"a hint is not believed": {
			days, "", nil, hint(order.Paid), settle.HintUnchanged, "load read", "pending",
		},
		"the provider's word counts, not the hint's": {
			days, "", cancels, hint(order.Paid), settle.HintSettled, settles, "pending canceled",
		},
		"a hint without a status is read": {
			days, "", nil, hint(""), settle.HintUnchanged, "load read", "pending",
		},
		"an order of a crashed worker is settled": {
			pays, dies, nil, hint(order.Paid), settle.HintSettled, settles, "paid",
		},
		"an order under a running lease is left to its worker": {
			pays, dies, leased, hint(order.Paid), settle.HintLeased, "load", "",
		},
		"an order without an intent waits for its message": {
			pays, ordertest.Begin, nil, onlyOrder, settle.HintNoIntent, "load", "",
		},
		"a canceled intent of another attempt is unbound": {
			pays, "", nil, unbound, settle.HintUnbound, "load", "paid",
		},
		"another scope is foreign": {pays, "", nil, other, settle.HintForeign, "", "paid"},
		"an intent of another scope is foreign": {
			pays, "", scoped("other", "ORD-1"), onlyIntent, settle.HintForeign, "read", "paid",
		},
		"an intent without an order is foreign": {
			pays, "", scoped("test", ""), onlyIntent, settle.HintForeign, "read", "paid",
		},
		"a hint without an order is read first": {
			days, "", clears, onlyIntent, settle.HintSettled, "read load read finish", "pending paid",
		},
	}
}

func disputeCases() map[string]followCase {
	const pays, days = ordertest.Pays, ordertest.TakesDays
	const recorded, shown = "read load list dispute", "read load list"
	const settledFirst = "read load read finish load list dispute"
	dispute := func(w *world) { w.bank.Dispute("pi_1") }
	followed := func(w *world) { dispute(w); w.follow() }
	won := func(w *world) { dispute(w); w.bank.CloseDispute("du_1", order.DisputeWon) }
	lost := func(w *world) { w.bank.CloseDispute("du_1", order.DisputeLost) }
	leased := func(w *world) { w.now = w.record("ORD-1").Until; dispute(w) }
	return map[string]followCase{
		"an open dispute is recorded": {
			pays, "", dispute, disputed(), settle.HintDisputed, recorded, "paid disputed",
		},
		"a dispute that the record shows is not written again": {
			pays, "", followed, disputed(), settle.HintAgrees, shown, "paid disputed",
		},
		"a dispute that was lost is another event": {
			pays, "", func(w *world) { followed(w); lost(w) },
			disputed(), settle.HintDisputeClosed, recorded, "paid disputed dispute_lost",
		},
		"a dispute that ended before the first hint is recorded as won": {
			pays, "", won, disputed(), settle.HintDisputeClosed, recorded, "paid dispute_won",
		},
		"a second dispute replaces the first": {
			pays, "", func(w *world) { won(w); w.follow(); dispute(w) },
			disputed(), settle.HintDisputed, recorded, "paid dispute_won disputed",
		},
		"an older dispute does not replace the newest": {
			pays, "", func(w *world) { dispute(w); followed(w); lost(w) },
			disputed(), settle.HintAgrees, shown, "paid disputed",
		},
		"a hint of a dispute is not believed": {
			pays, "", nil, disputed(), settle.HintAgrees, shown, "paid",
		},
		"a disputed order under a running lease is settled first": {
			pays, ordertest.Confirm, leased, disputed(), settle.HintDisputed, settledFirst, "paid disputed",
		},
		"a disputed order that was pending is settled first": {
			days, "", func(w *world) { w.bank.Clear("pi_1"); dispute(w) },
			disputed(), settle.HintDisputed, settledFirst, "pending paid disputed",
		},
		"another hint does not ask for disputes": {
			pays, "", dispute, settle.Hint{Intent: "pi_1", Status: order.Paid}, settle.HintAgrees, "read load", "paid",
		},
	}
}

// Each error means that the hint must come again.
func TestFollowErrors(t *testing.T) {
	const rejected = "the bank rejected the call, or a fault was injected"
	other := settle.Hint{OrderID: "ORD-1", Intent: "pi_2", Status: order.Paid, Disputed: true}
	for claim, tt := range map[string]struct {
		hint   settle.Hint
		before func(w *world)
		want   string
		shows  order.DisputeStatus // by the record, afterwards
	}{
		"a missing record": {settle.Hint{OrderID: "ORD-2"}, nil, "load order ORD-2: order not found", ""},
		"money that another intent took": {
			other, nil, `intent pi_2: intent is "pi_2", want "pi_1"`, "",
		},
		"an intent that the provider does not know": {
			settle.Hint{Intent: "pi_9"}, nil, "read intent pi_9: misconfigured: " + rejected + " (request req_3)", "",
		},
		"the provider does not list disputes": {
			disputed(), func(w *world) { w.bank.Fail(ordertest.ListDisputes, ordertest.ReturnsUnavailable) },
			"list disputes of order ORD-1: unavailable: " + rejected + " (request req_4)", "",
		},
		"the list of disputes is older than the record": {
			disputed(), func(w *world) { // another hint records more between list and write
				w.relist = func(all []order.Dispute) []order.Dispute {
					w.bank.CloseDispute("du_1", order.DisputeLost)
					w.follow()
					return all
				}
			}, `record dispute of order "ORD-1": concurrent update of the record`, order.DisputeLost,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			w.deliver("ORD-1", ordertest.Pays, "")
			w.bank.Dispute("pi_1")
			if tt.before != nil {
				tt.before(w)
			}
			f := w.follower()
			got, _, err := f.Follow(t.Context(), tt.hint)
			if d := w.record("ORD-1").Dispute; fmt.Sprint(err) != tt.want || got != "" || d.Status != tt.shows {
				t.Errorf("got %q, %v and dispute %+v, want %s and %q", got, err, d, tt.want, tt.shows)
			}
		})
	}
}

func TestTheNewestDisputeIsRecordedHoweverTheyAreListed(t *testing.T) {
	w := newWorld(t)
	w.deliver("ORD-1", ordertest.Pays, "")
	w.bank.Dispute("pi_1")
	newest := w.bank.Dispute("pi_1")
	f := w.follower()
	oldestFirst := func(all []order.Dispute) []order.Dispute { slices.Reverse(all); return all }
	none := func([]order.Dispute) []order.Dispute { return nil }
	for _, w.relist = range []func([]order.Dispute) []order.Dispute{nil, oldestFirst, none} {
		_, _, err := f.Follow(t.Context(), disputed())
		if got := w.record("ORD-1"); err != nil || got.Dispute.ID != newest || got.Seq != 2 {
			t.Errorf("got %v, dispute %s and seq %d, want %s and one event", err, got.Dispute.ID, got.Seq, newest)
		}
	}
}

func TestFollowTriesAgainIfTheRecordChanged(t *testing.T) {
	for changes, want := range []error{nil, nil, order.ErrStale} {
		w := newWorld(t)
		w.deliver("ORD-1", ordertest.TakesDays, "")
		w.bank.Clear("pi_1")
		left := changes
		w.saves = func(ordertest.Call) error {
			if left--; left >= 0 {
				return order.ErrStale
			}
			return nil
		}
		f := w.follower()
		_, _, err := f.Follow(t.Context(), settle.Hint{OrderID: "ORD-1", Intent: "pi_1"})
		if !errors.Is(err, want) {
			t.Errorf("%d changes: got %v, want %v", changes, err, want)
		}
	}
}

package order_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// follow sends a hint to a Follower and returns the names of its calls to the store and
// to the provider.
func (w *world) follow(h settle.Hint) (followed settle.Followed, calls []string, err error) {
	f := settle.Follower{
		Store: w.counted(&calls), Payments: w.counted(&calls), Scope: "test",
		Now: func() time.Time { return w.now },
	}
	followed, _, err = f.Follow(w.Context(), h)
	return followed, calls, err
}

func TestFollow(t *testing.T) {
	t.Parallel()
	hint := func(s order.Status) settle.Hint {
		return settle.Hint{OrderID: "ORD-1", Scope: "test", Intent: "pi_1", Status: s}
	}
	deliver := func(w *world) { w.deliver(noFault) }
	clears := func(w *world) { deliver(w); w.bank.Clear("pi_1") }
	load, look, settles := []string{"load"}, []string{"load", "read"}, []string{"load", "read", "finish"}
	for claim, tt := range map[string]struct {
		card   ordertest.Card
		before func(w *world)
		hint   settle.Hint
		want   settle.Followed
		status order.Status
		calls  []string
	}{
		"a paid order agrees with a hint that it is paid": {
			ordertest.Pays, deliver, hint(order.Paid), settle.HintAgrees, order.Paid, load,
		},
		"a paid order agrees with an older hint": {
			ordertest.Pays, deliver, hint(order.Pending), settle.HintAgrees, order.Paid, load,
		},
		"an order that the customer authenticated is settled": {
			ordertest.NeedsAuthentication, func(w *world) { deliver(w); w.bank.CustomerPays("pi_1") },
			hint(order.Paid), settle.HintSettled, order.Paid, settles,
		},
		"a pending order that cleared is settled": {
			ordertest.TakesDays, clears, hint(order.Paid), settle.HintSettled, order.Paid, settles,
		},
		"a hint is not believed": {
			ordertest.TakesDays, deliver, hint(order.Paid), settle.HintUnchanged, order.Pending, look,
		},
		"the provider's word counts, not the hint's": {
			ordertest.TakesDays, func(w *world) { deliver(w); w.bank.Cancel("pi_1") },
			hint(order.Paid), settle.HintSettled, order.Canceled, settles,
		},
		"a hint without a status is read": {
			ordertest.TakesDays, deliver, hint(""), settle.HintUnchanged, order.Pending, look,
		},
		"an order of a crashed worker is settled": {
			ordertest.Pays, func(w *world) { w.crashAfter(ordertest.Confirm) },
			hint(order.Paid), settle.HintSettled, order.Paid, settles,
		},
		"an order under a running lease is left to its worker": {
			ordertest.Pays, func(w *world) { w.crashAfter(ordertest.Confirm); w.now = w.record().Until },
			hint(order.Paid), settle.HintLeased, order.Open, load,
		},
		"an order without an intent waits for its message": {
			ordertest.Pays, func(w *world) { w.crashAfter(ordertest.Begin) },
			settle.Hint{OrderID: "ORD-1"},
			settle.HintNoIntent, order.Open, load,
		},
		"a canceled intent of another attempt is unbound": {
			ordertest.Pays, deliver,
			settle.Hint{OrderID: "ORD-1", Intent: "pi_2", Status: order.Canceled},
			settle.HintUnbound, order.Paid, load,
		},
		"another scope is foreign": {
			ordertest.Pays, deliver,
			settle.Hint{OrderID: "ORD-1", Scope: "other", Intent: "pi_1", Status: order.Paid},
			settle.HintForeign, order.Paid, nil,
		},
		"a hint without an order is read first": {
			ordertest.TakesDays, clears,
			settle.Hint{Intent: "pi_1"},
			settle.HintSettled, order.Paid,
			[]string{"read", "load", "read", "finish"},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.card)
			tt.before(w)
			got, calls, err := w.follow(tt.hint)
			if err != nil || got != tt.want || w.record().Status != tt.status {
				t.Errorf("got %s, %v and status %s, want %s and %s", got, err, w.record().Status, tt.want, tt.status)
			}
			if diff := cmp.Diff(calls, tt.calls); diff != "" {
				t.Errorf("calls (-got +want):\n%s", diff)
			}
			if v := w.violations(); v != "" {
				t.Error(v)
			}
		})
	}
}

func TestFollowErrors(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		hint settle.Hint
		want string
	}{
		"a missing record": {settle.Hint{OrderID: "ORD-2"}, `load order ORD-2: order not found`},
		"money that another intent took": {
			settle.Hint{OrderID: "ORD-1", Intent: "pi_2", Status: order.Paid}, `intent pi_2: intent is "pi_2", want "pi_1"`,
		},
		"an intent that the provider does not know": {
			settle.Hint{Intent: "pi_9"}, `read intent pi_9: misconfigured: the bank rejected the call, or a fault was injected (request req_3)`,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			w.deliver(noFault)
			followed, _, err := w.follow(tt.hint)
			if err == nil || err.Error() != tt.want || followed != "" {
				t.Errorf("got %q, %v, want %s", followed, err, tt.want)
			}
		})
	}
}

func TestFollowTriesAgainIfTheRecordChanged(t *testing.T) {
	t.Parallel()
	for changes, want := range []error{nil, nil, order.ErrStale} {
		w := newWorld(t, ordertest.TakesDays)
		w.deliver(noFault)
		w.bank.Clear("pi_1")
		f := settle.Follower{
			Store: &staleStore{w.store, changes}, Payments: w.bank, Scope: "test",
			Now: func() time.Time { return w.now },
		}
		if _, _, err := f.Follow(w.Context(), settle.Hint{OrderID: "ORD-1", Intent: "pi_1"}); !errors.Is(err, want) {
			t.Errorf("%d changes: got %v, want %v", changes, err, want)
		}
	}
}

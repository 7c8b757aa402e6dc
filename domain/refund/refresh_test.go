package refund_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/domain/settle"
)

func TestRefreshRecordsWhatTheProviderDid(t *testing.T) {
	takes := func(w *world) { w.bank.Takes = true }
	settle := func(s refund.Status) func(*world) { return func(w *world) { w.bank.Settle(s) } }
	returned := func(w *world) { w.bank.Return() }
	const (
		pending = "done settled: partially_refunded, pending, made 1"
		failed  = "refresh: paid, failed, made 0"
		shown   = "refresh: partially_refunded, succeeded, made 1"
	)
	for claim, steps := range map[string][]step{
		"nothing":                         {{0, nil, settled}, {0, nil, shown}},
		"a pending refund succeeds":       {{0, takes, pending}, {0, settle(refund.Succeeded), shown}},
		"a pending refund fails":          {{0, takes, pending}, {0, settle(refund.Failed), failed}},
		"a refund fails after three days": {{0, nil, settled}, {3 * day, returned, failed}},
		"a response was lost":             {{0, fails(ordertest.LosesResponse), unheard}, {time.Hour, nil, shown}},
		"a response was lost, and its worker holds the refund": {
			{0, fails(ordertest.LosesResponse), unheard}, {0, nil, "refresh: paid, open claimed sent, made 1"},
		},
		"somebody refunds in the Dashboard": {{0, inDashboard(total), "refresh: refunded, , made 0 outside 3998"}},
		"somebody refunds the rest":         {{0, nil, settled}, {0, inDashboard(half), "refresh: refunded, succeeded, made 1 outside 1999"}},
		// After a restore from backup the account lacks a refund of ours.
		"the store lost a refund": {
			{0, nil, settled},
			{0, func(w *world) { w.store = refundtest.NewMemory(w.orders) }, shown},
			{0, nil, "done duplicate: partially_refunded, succeeded, made 1"},
		},
		// A refund that failed is not repeated under its id, but under another one.
		"a refund that failed": {
			{0, nil, settled},
			{3 * day, returned, failed},
			{0, nil, "done duplicate: paid, failed, made 0"},
			{0, func(w *world) { w.deliver("R2", total) }, "done duplicate: refunded, failed, made 0"},
		},
	} {
		t.Run(claim, func(t *testing.T) { newWorld(t).take(half, steps) })
	}
	w := newWorld(t)
	for _, amount := range []int64{500, 300} { // an event has what went back since the last one
		inDashboard(amount)(w)
		w.refresh()
		r, _ := w.orders.Peek(orderID)
		want := order.RefundEvent{Status: order.RefundedOutside, Amount: amount}
		if got := r.Events[len(r.Events)-1].Refund; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// A request that the provider executes a day late makes a small refund twice. That is
// outside of the promise, but not outside of the account.
func TestRefreshCountsARefundThatWasMadeTwice(t *testing.T) {
	w := newWorld(t)
	w.take(half, []step{{0, fails(ordertest.LosesRequest), unmade}, {time.Hour, nil, settled}})
	w.wait(25 * time.Hour)
	w.bank.Complete()
	a := w.refresh()
	if w.made("R1") != 2 || a.Refunded() != total || a.Outside != half || a.Left() != 0 || a.Status != order.Refunded {
		t.Errorf("made %d times, got %+v, want the second refund outside", w.made("R1"), a)
	}
}

func TestRefreshLeavesAnOrderThatWasNotCharged(t *testing.T) {
	for card, want := range map[ordertest.Card]order.Status{
		ordertest.Declines: order.Declined, ordertest.DoesNotExist: order.Refused, // which has no intent to read
	} {
		if a := newWorldOf(t, paysWith(card)).refresh(); a.Status != want || len(a.Items) > 0 {
			t.Errorf("got %+v, want it %s", a, want)
		}
	}
}

// made is R1 at the provider, as it lists it.
func made(id refund.ProviderID, s refund.Status) refund.Refund {
	return refund.Refund{
		ID: id, Status: s, Total: usd(half), Intent: "pi_1", OrderID: orderID, Scope: scope,
		For: "R1", Reason: refund.RequestedByCustomer,
	}
}

// list makes the provider list these refunds alone.
func (w *world) list(all ...refund.Refund) { w.shows = func(l *refund.Ledger) { l.Refunds = all } }

// twoRefunds calls f with two refunds of R1 at the provider, in every order of states.
func twoRefunds(f func(first, second refund.Refund)) {
	states := []refund.Status{refund.Pending, refund.Succeeded, refund.Failed}
	for _, one := range states {
		for _, two := range states {
			f(made("re_1", one), made("re_2", two))
			f(made("re_2", two), made("re_1", one))
		}
	}
}

// A failed refund hides none that counts, wherever it stands in the list.
func TestAnAttemptFindsTheRefundThatCounts(t *testing.T) {
	twoRefunds(func(first, second refund.Refund) {
		w := newWorld(t)
		w.list(first, second)
		w.deliver("R1", half)
		want := first
		if !first.Status.Counts() && second.Status.Counts() {
			want = second
		}
		if i := w.item(); i.Status != want.Status || want.Status.Counts() && i.Refund != want.ID || len(w.bank.Refunds()) > 0 {
			t.Errorf("%s %s, %s %s: got %+v, want %s", first.ID, first.Status, second.ID, second.Status, i, want.ID)
		}
	})
}

// Whatever a refund's item says, and whatever two refunds at the provider became: after a
// look the account shows what went back, and a second look finds nothing new.
func TestRefreshShowsWhatWentBackOfTwoRefunds(t *testing.T) {
	for _, was := range refund.Statuses() {
		twoRefunds(func(first, second refund.Refund) {
			w := newWorld(t)
			c, err := refund.Begin(t.Context(), w.store, request(t, "R1", half), order.Lease{Owner: "worker", From: w.now, Until: w.now})
			if err == nil && was != refund.Open {
				o := refund.Outcome{Status: was}
				if was.Counts() || was == refund.Failed {
					o.Refund = "re_1"
				}
				err = c.Finish(t.Context(), w.store, o, w.now)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.wait(time.Hour)
			w.list(first, second)
			a, i := w.refresh(), w.item()
			var back int64
			for _, r := range []refund.Refund{first, second} {
				if r.Status.Counts() {
					back += r.Total.Amount
				}
			}
			bound := first
			if first.ID != "re_1" {
				bound = second
			}
			follows := was != refund.Pending || !bound.Status.Counts() || i.Refund == "re_1" && i.Status == bound.Status
			if !follows || a.Refunded() != back || i.Status.Counts() != (back > 0) || a.Left() != total-back {
				t.Errorf("%s, then %s %s, %s %s: got %+v, want %d back", was, first.ID, first.Status, second.ID, second.Status, a, back)
			}
		})
	}
}

// What the provider lists may be another's, or not be all.
func TestRefreshAdoptsItsOwn(t *testing.T) {
	ours := made("re_ours", refund.Succeeded)
	theirs, nameless, wrong, failed := ours, ours, ours, made("re_1", refund.Failed)
	theirs.Scope, theirs.Total.Amount = "other", 500
	nameless.For, nameless.Total.Amount = "", 50
	wrong.For, wrong.Total = "R2", order.Money{Amount: 5, Currency: "eur"}
	failed.Failure = "lost_or_stolen_card"
	w := newWorld(t)
	w.list(theirs, nameless, wrong, ours)
	a := w.refresh()
	if i := w.item(); i.Refund != "re_ours" || len(a.Items) != 1 || a.Outside != 555 ||
		i.Fingerprint != request(t, "R1", half).Fingerprint() {
		t.Errorf("got %+v, want re_ours adopted and 555 outside", a)
	}
	w.list(failed) // the list misses ours
	if i, _ := w.refresh().Item("R1"); i.Status != refund.Succeeded || i.Refund != "re_ours" {
		t.Errorf("got %+v, want it succeeded as re_ours", i)
	}
	w = newWorld(t)
	w.list(failed)
	if i, _ := w.refresh().Item("R1"); i.Status != refund.Failed || i.Failure != "lost_or_stolen_card" {
		t.Errorf("got %+v, want it failed with its code", i)
	}
}

// Another program may copy our metadata.
func TestRefreshTakesNoRefundOfAnotherAmountForOurs(t *testing.T) {
	w := newWorld(t)
	w.take(half, []step{{0, fails(ordertest.LosesRequest), unmade}})
	w.wait(time.Hour)
	other := made("re_other", refund.Succeeded)
	other.Total.Amount = 500
	w.list(other)
	if a := w.refresh(); w.item().Status != refund.Open || a.Outside != 500 {
		t.Errorf("got %+v, want R1 open and 500 outside", a)
	}
}

// The row names another order's intent, for example after an edit by hand.
func TestTheLedgerOfAnotherOrderIsNotUsed(t *testing.T) {
	w := newWorld(t)
	w.shows = func(l *refund.Ledger) {
		l.Intent.OrderID = "OTHER"
		l.Refunds = []refund.Refund{made("re_1", refund.Succeeded)}
	}
	_, err := w.refresher().Refresh(t.Context(), orderID)
	for claim, err := range map[string]error{"refresh": err, "process": w.deliver("R1", half).Err} {
		if _, mismatch := errors.AsType[*order.MismatchError](err); !mismatch {
			t.Errorf("%s: got %v, want a MismatchError", claim, err)
		}
	}
	if a := w.account(); len(a.Items) != 1 || w.item().Status != refund.Open {
		t.Errorf("got %+v, want the refund open", a)
	}
}

// staleOnce is a store in which another event is faster than the first write.
type staleOnce struct {
	refund.Store

	stale bool
}

func (s *staleOnce) Save(ctx context.Context, before, after refund.Account) (refund.Account, error) {
	if !s.stale {
		s.stale = true
		before.Seq++
		return before, order.ErrStale
	}
	return s.Store.Save(ctx, before, after)
}

// A webhook hints at a refund, perhaps of an order whose charge is not recorded yet.
func TestFollow(t *testing.T) {
	unrecorded := func(w *world) { w.bank.Intents.Clear("pi_1") }
	refunded := settle.Hint{Intent: "pi_1", Status: order.Paid, Refunded: true}
	other, charged := refunded, refunded
	other.Scope, charged.Refunded = "other", false
	for _, tt := range []struct {
		card   ordertest.Card
		before func(*world)
		hint   settle.Hint
		want   string
	}{
		{ordertest.Pays, inDashboard(total), refunded, "refunded, order refunded"},
		{ordertest.Pays, all(), refunded, "agrees, order paid"},
		{ordertest.Pays, inDashboard(total), charged, "agrees, order paid"},
		{ordertest.Pays, inDashboard(total), other, "foreign, order paid"},
		{ordertest.TakesDays, all(unrecorded, inDashboard(total)), refunded, "refunded, order refunded"},
		{ordertest.TakesDays, unrecorded, refunded, "settled, order paid"},
	} {
		w := newWorldOf(t, paysWith(tt.card))
		tt.before(w)
		refunds := w.refresher()
		refunds.Store = &staleOnce{Store: w.store}
		f := settle.Follower{Store: w.orders, Payments: w.bank.Intents, Scope: scope, Now: noon, Refunds: refunds.Seq}
		followed, _, err := f.Follow(t.Context(), tt.hint)
		if got := fmt.Sprintf("%s, order %s", cmp.Or(followed, "none"), w.account().Status); err != nil || got != tt.want {
			t.Errorf("%+v: got %s, %v, want %s", tt.hint, got, err, tt.want)
		}
	}
}

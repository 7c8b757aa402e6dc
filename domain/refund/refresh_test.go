package refund_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

func TestRefreshRecordsWhatTheProviderDid(t *testing.T) {
	made := func(w *world) { w.deliver(request(w.T, "R1", half), noFault) }
	for claim, tt := range map[string]struct {
		before, later func(*world)
		refund        refund.Status // of R1; "" for none
		status        order.Status
		outside       int64
		events        int
	}{
		"nothing": {made, func(*world) {}, refund.Succeeded, order.PartiallyRefunded, 0, 2},
		"a pending refund succeeds": {
			func(w *world) { w.bank.Takes = true; made(w) }, func(w *world) { w.bank.Settle(refund.Succeeded) },
			refund.Succeeded, order.PartiallyRefunded, 0, 3,
		},
		"a pending refund fails": {
			func(w *world) { w.bank.Takes = true; made(w) }, func(w *world) { w.bank.Settle(refund.Failed) },
			refund.Failed, order.Paid, 0, 3,
		},
		"a refund fails after three days": {
			made, func(w *world) { w.now = w.now.Add(3 * day); w.bank.Return() }, refund.Failed, order.Paid, 0, 3,
		},
		"a response was lost": {
			func(w *world) { w.bank.Fail(refundtest.Create, ordertest.LosesResponse); made(w) },
			func(w *world) { w.now = w.now.Add(time.Hour) }, refund.Succeeded, order.PartiallyRefunded, 0, 2,
		},
		"a response was lost, and its worker holds the refund": {
			func(w *world) { w.bank.Fail(refundtest.Create, ordertest.LosesResponse); made(w) },
			func(*world) {}, refund.Open, order.Paid, 0, 1,
		},
		"somebody refunds in the Dashboard": {
			func(*world) {}, func(w *world) { w.bank.InDashboard("pi_1", order.Money{Amount: total, Currency: "usd"}) },
			"", order.Refunded, total, 2,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			tt.before(w)
			tt.later(w)
			a := w.refresh()
			i, _ := a.Item("R1")
			r, _ := w.orders.Peek(orderID)
			if i.Status != tt.refund || a.Status != tt.status || a.Outside != tt.outside || len(r.Events) != tt.events {
				t.Errorf("got %+v with %d events, want %+v", a, len(r.Events), tt)
			}
			if v := w.violations(); len(v) > 0 {
				t.Error(v)
			}
			if diff := cmp.Diff(w.refresh(), a); diff != "" {
				t.Errorf("again (-got +want):\n%s", diff)
			}
		})
	}
}

// A request that the provider executes a day late makes a small refund twice. That is
// outside of the promise, but not outside of the account.
func TestRefreshCountsARefundThatWasMadeTwice(t *testing.T) {
	w := newWorld(t)
	w.bank.Fail(refundtest.Create, ordertest.LosesRequest)
	w.deliver(request(t, "R1", half), noFault)
	w.now = w.now.Add(time.Hour)
	w.deliver(request(t, "R1", half), noFault)
	w.now = w.now.Add(25 * time.Hour)
	w.bank.Complete()
	a := w.refresh()
	if w.made("R1") != 2 || a.Refunded() != total || a.Outside != half || a.Left() != 0 || a.Status != order.Refunded {
		t.Errorf("made %d times, got %+v, want the second refund outside", w.made("R1"), a)
	}
	if diff := cmp.Diff(w.refresh(), a); diff != "" {
		t.Errorf("again (-got +want):\n%s", diff)
	}
}

// Another program may copy our metadata.
func TestRefreshTakesNoRefundOfAnotherAmountForOurs(t *testing.T) {
	w := newWorld(t)
	w.bank.Fail(refundtest.Create, ordertest.LosesRequest)
	w.deliver(request(t, "R1", half), noFault)
	w.now = w.now.Add(time.Hour)
	s := w.bank.Open(t.Context())
	_, err := s.Read(t.Context(), "pi_1")
	if err == nil {
		_, err = s.Create(t.Context(), refund.CreateParams{Intent: "pi_1", OrderID: orderID, ID: "R1", Amount: 500, Key: "another program"})
	}
	if err != nil {
		t.Fatal(err)
	}
	a := w.refresh()
	if i, _ := a.Item("R1"); i.Status != refund.Open || a.Outside != 500 {
		t.Errorf("got %+v, want R1 open and 500 outside", a)
	}
}

// A refund that failed is not repeated under its id, and its amount can go back under
// another one.
func TestARefundThatFailedNeedsANewID(t *testing.T) {
	w := newWorld(t)
	w.deliver(request(t, "R1", total), noFault)
	w.now = w.now.Add(3 * day)
	w.bank.Return()
	if a := w.refresh(); a.Status != order.Paid || a.Left() != total {
		t.Errorf("got %+v, want the order paid and all of it left", a)
	}
	if got := w.deliver(request(t, "R1", total), noFault); got.Reason != order.ReasonDuplicate || w.made("R1") != 0 {
		t.Errorf("the same id: got %+v, made %d times, want a duplicate", got, w.made("R1"))
	}
	if got := w.deliver(request(t, "R2", total), noFault); got.Reason != order.ReasonSettled || w.made("R2") != 1 {
		t.Errorf("a new id: got %+v, made %d times, want it settled", got, w.made("R2"))
	}
}

// After a restore from backup the account lacks a refund of ours.
func TestRefreshAdoptsARefundThatTheStoreLost(t *testing.T) {
	w := newWorld(t)
	r := request(t, "R1", half)
	w.deliver(r, noFault)
	w.store = refundtest.NewMemory(w.orders)
	if i, found := w.refresh().Item("R1"); !found || i.Status != refund.Succeeded || i.Fingerprint != r.Fingerprint() {
		t.Errorf("got %+v, want the refund as it was made", i)
	}
	if got := w.deliver(r, noFault); got.Reason != order.ReasonDuplicate || w.made("R1") != 1 {
		t.Errorf("its message: got %+v, made %d times, want a duplicate", got, w.made("R1"))
	}
}

func TestRefreshLeavesAnOrderThatWasNotCharged(t *testing.T) {
	for card, want := range map[ordertest.Card]order.Status{
		ordertest.Declines: order.Declined, ordertest.DoesNotExist: order.Refused, // which has no intent to read
	} {
		if a := newWorldWith(t, card).refresh(); a.Status != want || len(a.Items) > 0 {
			t.Errorf("got %+v, want it %s", a, want)
		}
	}
}

// ledgers is a provider whose Read shows something else.
type ledgers struct {
	refund.Provider

	change func(*refund.Ledger)
}

// listed returns a provider whose Read shows other refunds.
func listed(p refund.Provider, change func([]refund.Refund) []refund.Refund) ledgers {
	return ledgers{p, func(l *refund.Ledger) { l.Refunds = change(l.Refunds) }}
}

func (p ledgers) Open(ctx context.Context) refund.Session { //nolint:ireturn // as the port
	return ledgersSession{p.Provider.Open(ctx), p.change}
}

type ledgersSession struct {
	refund.Session

	change func(*refund.Ledger)
}

func (s ledgersSession) Read(ctx context.Context, id order.IntentID) (refund.Ledger, error) {
	l, err := s.Session.Read(ctx, id)
	s.change(&l)
	return l, err
}

// refreshListed refreshes while the provider's list is changed.
func (w *world) refreshListed(change func([]refund.Refund) []refund.Refund) refund.Account {
	w.Helper()
	f := refund.Refresher{
		Store: w.store, Provider: listed(w.bank, change), Scope: scope, Now: func() time.Time { return w.now },
	}
	a, err := f.Refresh(w.Context(), orderID)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// A deployment with another scope may use the same order and refund ids.
func TestRefreshAdoptsNoRefundOfAnotherScope(t *testing.T) {
	w := newWorld(t)
	ours := refund.Refund{
		ID: "re_ours", Status: refund.Succeeded, Intent: "pi_1", Total: order.Money{Amount: 700, Currency: "usd"},
		OrderID: orderID, Scope: scope, For: "R1", Reason: refund.Duplicate,
	}
	theirs := ours
	theirs.ID, theirs.Scope, theirs.Total.Amount = "re_theirs", "other", 500
	nameless, wrong := ours, ours
	nameless.ID, nameless.For, nameless.Total.Amount = "re_nameless", "", 50
	wrong.ID, wrong.For, wrong.Total = "re_wrong", "R2", order.Money{Amount: 5, Currency: "eur"}
	a := w.refreshListed(func([]refund.Refund) []refund.Refund { return []refund.Refund{theirs, nameless, wrong, ours} })
	if i, _ := a.Item("R1"); i.Refund != "re_ours" || len(a.Items) != 1 || a.Outside != 555 {
		t.Errorf("got %+v, want re_ours adopted and 555 outside", a)
	}
}

// The row names another order's intent, for example after an edit by hand.
func TestTheLedgerOfAnotherOrderIsNotUsed(t *testing.T) {
	w := newWorld(t)
	foreign := ledgers{w.bank, func(l *refund.Ledger) {
		l.Intent.OrderID = "OTHER"
		l.Refunds = []refund.Refund{made("re_1", refund.Succeeded)}
	}}
	f := refund.Refresher{Store: w.store, Provider: foreign, Scope: scope, Now: func() time.Time { return w.now }}
	_, err := f.Refresh(t.Context(), orderID)
	got := w.process(w.store, foreign, request(t, "R1", half))
	for claim, err := range map[string]error{"refresh": err, "process": got.Err} {
		if _, mismatch := errors.AsType[*order.MismatchError](err); !mismatch {
			t.Errorf("%s: got %v, want a MismatchError", claim, err)
		}
	}
	if i, _ := w.account().Item("R1"); i.Status != refund.Open || len(w.account().Items) != 1 {
		t.Errorf("got %+v, want the refund open", w.account())
	}
}

// A refund of ours that the store lost may have failed.
func TestRefreshAdoptsAFailureWithItsCode(t *testing.T) {
	failed := made("re_1", refund.Failed)
	failed.Failure = "lost_or_stolen_card"
	a := newWorld(t).refreshListed(func([]refund.Refund) []refund.Refund { return []refund.Refund{failed} })
	if i, _ := a.Item("R1"); i.Status != refund.Failed || i.Failure != "lost_or_stolen_card" || a.Left() != total {
		t.Errorf("got %+v, want it failed with its code", a)
	}
}

// Two refunds at the provider may name one id, and its list may lag.
func TestRefreshFollowsNoOtherRefundWhileTheListMissesOurs(t *testing.T) {
	w := newWorld(t)
	w.deliver(request(t, "R1", half), noFault)
	a := w.refreshListed(func(all []refund.Refund) []refund.Refund {
		other := all[0]
		other.ID, other.Status = "re_other", refund.Failed
		return []refund.Refund{other}
	})
	if i, _ := a.Item("R1"); i.Status != refund.Succeeded || i.Refund != "re_1" {
		t.Errorf("got %+v, want it succeeded as re_1", i)
	}
}

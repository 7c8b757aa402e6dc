package refund_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// made is R1 at the provider, as it lists it.
func made(id refund.ProviderID, s refund.Status) refund.Refund {
	return refund.Refund{
		ID: id, Status: s, Total: order.Money{Amount: half, Currency: "usd"}, Intent: "pi_1", OrderID: orderID, Scope: scope,
		For: "R1", Reason: refund.RequestedByCustomer,
	}
}

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
		list := func([]refund.Refund) []refund.Refund { return []refund.Refund{first, second} }
		w.process(w.store, listed(w.bank, list), request(t, "R1", half))
		want := first
		if !first.Status.Counts() && second.Status.Counts() {
			want = second
		}
		if i, _ := w.account().Item("R1"); i.Status != want.Status || want.Status.Counts() && i.Refund != want.ID || len(w.bank.Refunds()) > 0 {
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
			w.now = w.now.Add(time.Hour)
			list := func([]refund.Refund) []refund.Refund { return []refund.Refund{first, second} }
			a := w.refreshListed(list)
			var back int64
			for _, r := range list(nil) {
				if r.Status.Counts() {
					back += r.Total.Amount
				}
			}
			claim := fmt.Sprintf("%s, then %s %s, %s %s", was, first.ID, first.Status, second.ID, second.Status)
			bound := first
			if first.ID != "re_1" {
				bound = second
			}
			if i, _ := a.Item("R1"); was == refund.Pending && bound.Status.Counts() && (i.Refund != "re_1" || i.Status != bound.Status) {
				t.Errorf("%s: got %+v, want it to follow re_1", claim, i)
			}
			if i, _ := a.Item("R1"); a.Refunded() != back || i.Status.Counts() != (back > 0) || a.Left() != total-back {
				t.Errorf("%s: got %+v, want %d back", claim, a, back)
			}
			if diff := cmp.Diff(w.refreshListed(list), a); diff != "" {
				t.Errorf("%s: again (-got +want):\n%s", claim, diff)
			}
		})
	}
}

// An account counts and reserves by the status of each refund, whatever its place.
func TestAnAccountOfTwoRefunds(t *testing.T) {
	counts := map[refund.Status]bool{refund.Pending: true, refund.Succeeded: true}
	reserves := map[refund.Status]bool{refund.Pending: true, refund.Succeeded: true, refund.Open: true, refund.Unknown: true}
	waits := map[refund.Status]time.Duration{refund.Open: 30 * time.Minute, refund.Pending: day}
	for _, one := range refund.Statuses() {
		for _, two := range refund.Statuses() {
			a := refund.Account{Charged: order.Money{Amount: total, Currency: "usd"}, Items: []refund.Item{
				{ID: "R1", Amount: 1, Status: one, UpdatedAt: noon()}, {ID: "R2", Amount: 10, Status: two, UpdatedAt: noon().Add(day)},
			}}
			var back, reserved int64
			var due time.Time
			for _, i := range a.Items {
				if counts[i.Status] {
					back += i.Amount
				}
				if reserves[i.Status] {
					reserved += i.Amount
				}
				if at := i.UpdatedAt.Add(waits[i.Status]); waits[i.Status] > 0 && (due.IsZero() || at.Before(due)) {
					due = at
				}
			}
			if a.Refunded() != back || a.Left() != total-reserved || !a.DueAt().Equal(due) {
				t.Errorf("%s, %s: got %d back, %d left, due %v, want %d, %d, %v",
					one, two, a.Refunded(), a.Left(), a.DueAt(), back, total-reserved, due)
			}
		}
	}
}

func TestAbandoned(t *testing.T) {
	now := noon().Add(day)
	for claim, tt := range map[string]struct {
		item refund.Item
		want bool
	}{
		"open, without an attempt for a day":         {refund.Item{Status: refund.Open, UpdatedAt: noon()}, true},
		"open, an attempt less than a day ago":       {refund.Item{Status: refund.Open, UpdatedAt: noon().Add(1)}, false},
		"open, under a lease":                        {refund.Item{Status: refund.Open, UpdatedAt: noon(), Until: now.Add(1)}, false},
		"open, and its lease ended":                  {refund.Item{Status: refund.Open, UpdatedAt: noon(), Until: now.Add(-1)}, true},
		"pending, without an attempt for a day":      {refund.Item{Status: refund.Pending, UpdatedAt: noon()}, false},
		"unknown, and a person has not looked at it": {refund.Item{Status: refund.Unknown, UpdatedAt: noon()}, false},
	} {
		if got := tt.item.Abandoned(now); got != tt.want {
			t.Errorf("%s: got %t, want %t", claim, got, tt.want)
		}
	}
}

// takenOver is a store in which another attempt takes the refund over before Release.
type takenOver struct{ refund.Store }

func (s takenOver) Save(ctx context.Context, before, after refund.Account) (refund.Account, error) {
	if refundtest.CallOf(before, after) == refundtest.Release {
		before.Items[0].Owner = "another"
		return before, order.ErrStale
	}
	return s.Store.Save(ctx, before, after)
}

// Only the attempt that holds the claim may move the message to the dead letters.
func TestARefundIsNotParkedIfItsClaimWasLost(t *testing.T) {
	for claim, tt := range map[string]struct {
		lost bool
		want order.Verdict
		why  order.Reason
	}{
		"the claim is held": {false, order.Park, order.ReasonKeyReused}, "the claim was lost": {true, order.Redeliver, order.ReasonClaimLost},
	} {
		w := newWorld(t)
		provider := refundtest.Intercepted{Provider: w.bank, Intercept: func(c refundtest.Call, do func() error) error {
			if c == refundtest.Create {
				return &order.PaymentError{Kind: order.KindKeyReused, Err: errors.New("used before")}
			}
			return do()
		}}
		store := refund.Store(w.store)
		if tt.lost {
			store = takenOver{w.store}
		}
		got := w.process(store, provider, request(t, "R1", half))
		if got.Verdict != tt.want || got.Reason != tt.why || got.Transient != tt.lost || errors.Is(got.Err, order.ErrClaimLost) != tt.lost {
			t.Errorf("%s: got %+v, want %s, %s", claim, got, tt.want, tt.why)
		}
	}
}

func TestAResultCountsAttempts(t *testing.T) {
	w := newWorld(t)
	for n := range 3 {
		w.bank.Fail(refundtest.Read, ordertest.ReturnsUnavailable)
		if got := w.deliver(request(t, "R1", half), noFault); got.Attempt != n+1 || got.Takeover != (n > 0) {
			t.Errorf("delivery %d: got %+v, want attempt %d", n+1, got, n+1)
		}
	}
}

// A dispute explains a refusal only while the key of an earlier request certainly lives.
func TestADisputeExplainsARefusalForTwentyHours(t *testing.T) {
	for age, want := range map[time.Duration]refund.Status{
		20*time.Hour - time.Second: refund.Refused, 20 * time.Hour: refund.Unknown,
	} {
		w := newWorld(t)
		w.bank.Fail(refundtest.Create, ordertest.LosesRequest)
		w.deliver(request(t, "R1", total), noFault)
		w.now = w.now.Add(age)
		w.bank.Dispute("pi_1")
		w.deliver(request(t, "R1", total), refuses)
		if i, _ := w.account().Item("R1"); i.Status != want {
			t.Errorf("after %v: got %+v, want it %s", age, i, want)
		}
	}
}

// The event has what went back since the last one.
func TestAnEventOfARefundOutsideHasItsAmount(t *testing.T) {
	w := newWorld(t)
	for _, amount := range []int64{500, 300} {
		w.bank.InDashboard("pi_1", order.Money{Amount: amount, Currency: "usd"})
		w.refresh()
		r, _ := w.orders.Peek(orderID)
		want := order.RefundEvent{Status: order.RefundedOutside, Amount: amount}
		if got := r.Events[len(r.Events)-1].Refund; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

package order_test

import (
	"fmt"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// mostCalls is what the longest delivery of these tests makes.
const mostCalls = 6

// ends is what the order of each card must come to, whatever happens on the way.
func ends() map[ordertest.Card]order.Status {
	return map[ordertest.Card]order.Status{
		ordertest.Pays:                order.Paid,
		ordertest.Declines:            order.Declined,
		ordertest.NeedsAuthentication: order.ActionRequired,
		ordertest.TakesDays:           order.Pending,
	}
}

// worlds runs do once for each card, with a provider that keeps its keys and with one
// that forgets them between any two deliveries.
func worlds(t *testing.T, do func(w *world, forget func(), end order.Status)) {
	t.Helper()
	for card, end := range ends() {
		for _, forgets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, keys forgotten: %t", card, forgets), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, card)
				do(w, func() {
					if forgets {
						w.bank.ForgetKeys()
					}
				}, end)
			})
		}
	}
}

// again is the same world before anything happened.
func (w *world) again() {
	w.store, w.bank = new(ordertest.Memory), &ordertest.Bank{Scope: "test"}
	w.payments, w.now = w.bank, noon()
}

// Three workers in a row die, each at any call, just before or just after it; the fourth
// one lives.
func TestCrashesAnywhereChargeOnce(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world, forget func(), end order.Status) {
		var deaths int
		for i := range 2 * mostCalls * 2 * mostCalls * 2 * mostCalls {
			w.again()
			for n, rest := 0, i; n < 3; n, rest = n+1, rest/(2*mostCalls) {
				if w.crash(ordertest.CrashAt(rest%(2*mostCalls)/2, rest%2 == 0)) {
					deaths++
				}
				w.isTrue()
				forget()
			}
			w.settledAs(w.redeliver(asIs), end)
			if w.Failed() {
				w.Fatalf("in world %d", i)
			}
		}
		if deaths == 0 {
			w.Error("nobody died")
		}
	})
}

func TestLostCallsChargeOnce(t *testing.T) {
	t.Parallel()
	all := []ordertest.Call{
		ordertest.Begin, ordertest.Prepare, ordertest.Bind, ordertest.Confirm, ordertest.Read, ordertest.Finish, ordertest.Release,
	}
	lose := []func(ordertest.Call) ordertest.Interceptor{ordertest.LoseResponseOf, ordertest.LoseRequestOf}
	worlds(t, func(w *world, forget func(), end order.Status) {
		for _, first := range all {
			for _, second := range all {
				for i := range 4 {
					w.again()
					w.redeliver(lose[i%2](first))
					w.isTrue()
					forget()
					w.redeliver(lose[i/2](second))
					w.isTrue()
					forget()
					if w.settledAs(w.redeliver(asIs), end); w.Failed() {
						w.Fatalf("lost %s, then %s (%d)", first, second, i)
					}
				}
			}
		}
	})
}

// A worker freezes at any call, just before or just after it. Its lease ends, another one
// does all the work, and the frozen one goes on as if nothing had happened.
func TestFrozenWorkersChargeOnce(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world, forget func(), end order.Status) {
		for i := range 2 * mostCalls {
			w.again()
			n := i / 2
			got := w.deliver(func(_ ordertest.Call, do func() error) error {
				n--
				if n == -1 && i%2 == 0 {
					w.otherWorks(forget, end)
				}
				err := do()
				if n == -1 && i%2 == 1 {
					w.otherWorks(forget, end)
				}
				return err
			})
			w.isTrue()
			if got.Verdict == order.Park || got.Verdict == order.Done && got.Status != end {
				w.Fatalf("frozen at call %d: got %+v, want it to end as %s", i, got, end)
			}
			w.settledAs(w.redeliver(asIs), end)
		}
	})
}

// A worker that froze in its first Prepare hears, once it goes on, that the key was used
// for something else: by the one that settled the order meanwhile, perhaps of an older
// release. That is no reason to call a person.
func TestAFrozenWorkerDoesNotParkWhatOthersSettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	got := w.deliver(only(ordertest.Prepare, func(func() error) error {
		w.otherWorks(func() {}, order.Paid)
		return &order.PaymentError{Kind: order.KeyReused, Err: ordertest.ErrConnection}
	}))
	if got.Verdict != order.Redeliver || got.Reason != order.ReasonClaimLost {
		t.Errorf("got %s for %s, want %s for %s", got.Verdict, got.Reason, order.Redeliver, order.ReasonClaimLost)
	}
	w.settledAs(w.redeliver(asIs), order.Paid)
}

// otherWorks is a delivery to another worker while the first one is frozen.
func (w *world) otherWorks(forget func(), end order.Status) {
	now := w.now
	forget()
	w.settledAs(w.redeliver(asIs), end)
	forget()
	w.now = now.Add(2 * time.Hour)
}

// The provider has any two mishaps in a row, at any calls, and also keeps failures under
// keys.
func TestMishapsChargeOnce(t *testing.T) {
	t.Parallel()
	calls := []ordertest.Call{ordertest.Prepare, ordertest.Confirm, ordertest.Read}
	mishaps := []ordertest.Fault{
		ordertest.ReturnsUnavailable, ordertest.ReturnsMisconfigured, ordertest.LosesRequest, ordertest.LosesResponse,
		ordertest.StoresFailure, ordertest.StoresFailureAfterEffect,
	}
	n := len(calls) * len(mishaps)
	worlds(t, func(w *world, forget func(), end order.Status) {
		for i := range n * n {
			w.again()
			for _, j := range []int{i % n, i / n} {
				w.bank.Fail(calls[j%len(calls)], mishaps[j/len(calls)])
			}
			var last order.Result
			for deliveries := 0; deliveries < 4 && last.Verdict != order.Done; deliveries++ {
				last = w.redeliver(asIs)
				w.isTrue()
				forget()
			}
			if w.settledAs(last, end); w.Failed() {
				w.Fatalf("in world %d", i)
			}
		}
	})
}

package order_test

import (
	"fmt"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// maxCalls is the number of calls of the longest delivery in these tests.
const maxCalls = 6

// finalStatuses maps each card to the status that its order must reach.
func finalStatuses() map[ordertest.Card]order.Status {
	return map[ordertest.Card]order.Status{
		ordertest.Pays:                order.Paid,
		ordertest.Declines:            order.Declined,
		ordertest.NeedsAuthentication: order.ActionRequired,
		ordertest.TakesDays:           order.Pending,
	}
}

// forEachCard runs do for each card, with a provider that keeps its keys and with one
// that forgets them after each delivery.
func forEachCard(t *testing.T, do func(w *world, want final)) {
	t.Helper()
	for card, status := range finalStatuses() {
		for _, forgets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, keys forgotten: %t", card, forgets), func(t *testing.T) {
				w := newWorld(t, card)
				w.forgetsKeys = forgets
				do(w, settled(status))
			})
		}
	}
}

// reset returns the world to its initial state.
func (w *world) reset() {
	w.store, w.bank = new(ordertest.Memory), &ordertest.Bank{Scope: "test"}
	w.payments, w.now = w.bank, noon()
}

// Three workers in a row crash, each just before or just after any call. The fourth one
// completes.
func TestThreeCrashesAnywhereChargeOnce(t *testing.T) {
	forEachCard(t, func(w *world, want final) {
		var crashes int
		for i := range 2 * maxCalls * 2 * maxCalls * 2 * maxCalls {
			w.reset()
			for n, rest := 0, i; n < 3; n, rest = n+1, rest/(2*maxCalls) {
				if w.crash(ordertest.CrashAt(rest%(2*maxCalls)/2, rest%2 == 0)) {
					crashes++
				}
				if v := w.violations(); v != "" {
					w.Fatalf("history %d, after crash %d: %s", i, n, v)
				}
			}
			if got := w.final(w.redeliver(noFault)); got != want {
				w.Fatalf("history %d: got %+v, want %+v", i, got, want)
			}
		}
		if crashes == 0 {
			w.Error("got no crash, want some")
		}
	})
}

// A worker freezes just before or just after any call. Its lease expires, another worker
// settles the order, and then the frozen worker continues.
func TestAFrozenWorkerDoesNotChargeTwice(t *testing.T) {
	forEachCard(t, func(w *world, want final) {
		for i := range 2 * maxCalls {
			w.reset()
			settleElsewhere := func() {
				if got := w.processElsewhere(); got != want {
					w.Fatalf("frozen at call %d, the other worker: got %+v, want %+v", i, got, want)
				}
			}
			n := i / 2
			frozen := w.deliver(func(_ ordertest.Call, do func() error) error {
				n--
				if n == -1 && i%2 == 0 {
					settleElsewhere()
				}
				err := do()
				if n == -1 && i%2 == 1 {
					settleElsewhere()
				}
				return err
			})
			if frozen.Verdict == order.Park || frozen.Verdict == order.Done && frozen.Status != want.Status {
				w.Fatalf("frozen at call %d: got %+v, want it settled as %s or redelivered", i, frozen, want.Status)
			}
			if got := w.final(w.redeliver(noFault)); got != want {
				w.Fatalf("frozen at call %d: got %+v, want %+v", i, got, want)
			}
		}
	})
}

// processElsewhere delivers the order to another worker while the first one is frozen.
func (w *world) processElsewhere() final {
	now := w.now
	w.forgetKeys()
	got := w.final(w.redeliver(noFault))
	w.forgetKeys()
	w.now = now.Add(2 * time.Hour)
	return got
}

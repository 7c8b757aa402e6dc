package simulation_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

func TestTwoHistoriesOfOneSeedAreAViolation(t *testing.T) {
	t.Parallel()
	for _, changes := range []bool{false, true} {
		messages := []world.Message{sold(2, world.Visa)}
		r := simulation.Draw{Seed: 1, Worlds: 1, Change: func(c *world.Case) {
			if changes {
				messages = append(messages, messages[0])
			}
			*c = world.Case{Messages: messages}
		}}.Run(nil)
		if got := r.Worst != nil && r.Worst.Violation.Invariant == oracle.SameHistory; got != changes {
			t.Errorf("got a violation: %t (%v), want %t", got, r.Worst, changes)
		}
	}
}

// Most worlds call the Stripe adapter without HTTP, because net/http takes most of the
// time.
func TestTheStripeAdapterBehavesTheSameWithAndWithoutHTTP(t *testing.T) {
	t.Parallel()
	lab := world.NewLab()
	run := func(seed uint64, adapter bool) stage.History {
		c, choose := simulation.Drawn(seed)
		c.Adapter, c.Batch = adapter, 0
		w := lab.NewWorld(c, choose).KeepHistory()
		w.Run()
		return w.History()
	}
	for seed := range uint64(600) {
		without, with := run(seed, false), run(seed, true)
		if diff := cmp.Diff(without, with); diff != "" {
			t.Fatalf("seed %d: history (-without HTTP +with HTTP)\n%s\n%s", seed, diff, with)
		}
	}
}

func TestRandomWorldsReachEveryReasonThatTheirFaultsCanCause(t *testing.T) {
	t.Parallel()
	unseen := map[order.Reason]bool{}
	for _, r := range order.Reasons() {
		unseen[r] = true
	}
	for seed := uint64(0); seed < 10_000 && len(unseen) > 6; seed++ {
		h, _, _ := simulation.Replay(strconv.FormatUint(seed, 10))
		for _, l := range h {
			if _, rest, reply := strings.Cut(l.What, " ("); reply {
				delete(unseen, order.Reason(strings.TrimSuffix(rest, ")")))
			}
		}
	}
	want := map[order.Reason]bool{ // these need a broken provider, a lost or corrupt row, stock, or a body that is not an order
		order.ReasonUnconfirmed: true,
		order.ReasonReplayed:    true,
		order.ReasonKeyReused:   true,
		order.ReasonCorrupt:     true,
		order.ReasonInvalid:     true,
		order.ReasonUnknownSKU:  true,
	}
	if diff := cmp.Diff(unseen, want); diff != "" {
		t.Errorf("unseen reasons (-got +want)\n%s", diff)
	}
}

// A fault that never happens would prove nothing about the product.
func TestEveryKindOfTroubleHappens(t *testing.T) {
	t.Parallel()
	tally := simulation.Draw{Seed: 1, Worlds: 20_000}.Run(nil).Tally
	got := slices.DeleteFunc(slices.Sorted(maps.Keys(tally)), func(what string) bool {
		return slices.Contains(world.Counters(), what)
	})
	if len(got) != 49 {
		t.Errorf("got %d kinds of trouble, want 49: all of world's faults and options:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// An older release sends Stripe another parameter. A double that refused it would prove
// nothing about two releases beside each other.
func TestAnOlderReleasePrepares(t *testing.T) {
	t.Parallel()
	for seed := range 2_000 {
		h, _, _ := simulation.Replay(strconv.Itoa(seed))
		older := map[string]bool{}
		for _, l := range h {
			if _, to, delivers := strings.Cut(l.What, " to "); delivers && l.Answer == "of the older release" {
				older[to] = true
			}
			if older[l.Who] && strings.HasPrefix(l.What, "prepare ") && strings.HasPrefix(l.Answer, "pi_") {
				return
			}
		}
	}
	t.Error("no older release prepared an order, want one")
}

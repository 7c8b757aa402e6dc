package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

func TestTheSimulationFindsADoubleChargeInEveryBaseline(t *testing.T) {
	t.Parallel()
	for _, b := range baselines.All() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			r := searchBaseline(b, oracle.ChargedOnce, 20_000)
			if r.Worst == nil {
				t.Fatalf("no order was charged twice in %d worlds", r.Drawn)
			}
			t.Logf("%s", r.Worst)
		})
	}
}

// A baseline can break several invariants. Shrinking must not replace the requested one.
func TestTheShortestHistoryBreaksTheRequestedInvariant(t *testing.T) {
	t.Parallel()
	all := baselines.All()
	at := slices.IndexFunc(all, func(b baselines.Baseline) bool { return b.Name == "message-id-before" })
	for _, want := range []stage.Invariant{oracle.ChargedOnce, oracle.EverythingEnds} {
		found := searchBaseline(all[at], want, 20_000).Worst
		if found == nil || found.Violation.Invariant != want {
			t.Fatalf("%s: got %v", want, found)
		}
		replayed := world.NewLab().NewWorld(found.Case, found.Tape.Chooser()).Run()
		if diff := cmp.Diff(replayed, &found.Violation); diff != "" {
			t.Errorf("%s, replayed: (-got +want)\n%s", want, diff)
		}
	}
}

package controls_test

import (
	"testing"

	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/baselines/controls"
	"orderonce/scripts/lab/simulation"
)

// A design that breaks two promises is told by a story of the one that was asked for. Shrinking must not slip to the other.
func TestTheShortestStoryBreaksThePromiseThatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, d := range baselines.All() {
		if d.Name != "message-id-before" {
			continue
		}
		for _, promise := range []simulation.Invariant{simulation.ChargedOnce, simulation.EverythingEnds} {
			f := controls.Find(d, promise, 20_000).Worst
			if f == nil || f.Violation.Invariant != promise {
				t.Fatalf("asked for %s: got %v", promise, f)
			}
			w := simulation.NewLab().World(f.Case, f.Tape.Chooser())
			if broken := w.Run(); broken == nil || *broken != f.Violation {
				t.Errorf("the story of %v, played again, breaks %v", f.Violation, broken)
			}
		}
		return
	}
	t.Error("no design is called message-id-before")
}

// A search that cannot find what is wrong with these says nothing about the product.
func TestEveryDesignThatPeopleCopyIsCaught(t *testing.T) {
	t.Parallel()
	for _, d := range baselines.All() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			r := controls.Find(d, simulation.ChargedOnce, 20_000)
			if r.Worst == nil {
				t.Fatalf("%d worlds, and no order was charged twice", r.Drawn)
			}
			t.Logf("%s", r.Worst)
		})
	}
}

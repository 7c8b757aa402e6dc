package simulation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/simulation"
)

func TestExploreVisitsEachSeriesOnceAndTheUsualOneFirst(t *testing.T) {
	t.Parallel()
	var got [][]int
	runs := simulation.Explore(2, func(tape simulation.Tape, choose simulation.Choose) {
		a := choose(2)
		got = append(
			got,
			[]int{tape.Deviations(), a, choose(3 - a)},
		) // how many ways there are may depend on the way so far
	})
	want := [][]int{{0, 0, 0}, {1, 1, 0}, {2, 1, 1}, {1, 0, 1}, {1, 0, 2}}
	if diff := cmp.Diff(got, want); diff != "" || runs != len(want) {
		t.Errorf("%d runs, (-got +want)\n%s", runs, diff)
	}
}

func TestEveryByteStringIsASchedule(t *testing.T) {
	t.Parallel()
	choose := simulation.Tape{1, 9, 0, 2}.Chooser()
	var got []int
	for _, n := range []int{2, 3, 4, 3, 5} {
		got = append(got, choose(n))
	}
	if diff := cmp.Diff(got, []int{1, 0, 0, 2, 0}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestShrinkKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	sevenThenThree := func(t simulation.Tape) bool {
		seen := false
		for _, way := range t {
			if seen && way == 3 {
				return true
			}
			seen = seen || way == 7
		}
		return false
	}
	got := simulation.Shrink(simulation.Tape{0, 5, 7, 0, 1, 0, 3, 3, 0, 7, 0, 0}, sevenThenThree)
	if diff := cmp.Diff(got, simulation.Tape{7, 3}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

// strict is a search for a promise that the product breaks: no order may be canceled.
func strict() simulation.Search {
	return simulation.Search{Most: 2, Case: simulation.Case{
		Name: "strict", Messages: []simulation.Message{sold(2, "pm_usBankAccount_processing")}, People: true, Strict: true,
	}}
}

// A search that merges states must find what one without merging finds.
func TestMergingLosesNoViolation(t *testing.T) {
	t.Parallel()
	known, lab, without := strict(), simulation.NewLab(), 0
	all := simulation.Explore(known.Most, func(_ simulation.Tape, choose simulation.Choose) {
		if lab.World(known.Case, choose).Run() != nil {
			without++
		}
	})
	r := simulation.Run([]simulation.Search{known}, nil)
	if without == 0 || r.Worst == nil || r.Worst.Violation.Invariant != simulation.AsAllowed ||
		r.Schedules >= all ||
		r.Merged == 0 {
		t.Errorf(
			"%d of %d schedules break a promise; merged: %d schedules, %d merged, worst %v",
			without,
			all,
			r.Schedules,
			r.Merged,
			r.Worst,
		)
	}
}

package simulation_test

import (
	"testing"

	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/schedule"
)

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
	all := schedule.Explore(known.Most, func(_ schedule.Tape, choose schedule.Choose) {
		if lab.World(known.Case, choose).Run() != nil {
			without++
		}
	})
	r := simulation.Run([]simulation.Search{known}, nil)
	if without == 0 || r.Worst == nil || r.Worst.Violation.Invariant != simulation.AsAllowed ||
		r.Schedules >= all ||
		r.Merged == 0 {
		t.Errorf("%d of %d schedules break a promise; merged: %d schedules, %d merged, worst %v", without, all, r.Schedules, r.Merged, r.Worst)
	}
}

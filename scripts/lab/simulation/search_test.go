package simulation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// sold returns an order of mugs for 19.99 USD each.
func sold(quantity int64, method string) world.Message {
	m := world.Message{ID: "ORD-1", Customer: "CUST987", Currency: "usd", Payer: "cus_pretend", Method: method}
	m.Lines[0] = world.SKU{SKU: "MUG", Quantity: quantity, Price: 1999}
	return m
}

// strict returns a search with a violation: an order is canceled although it must not be.
func strict() simulation.Search {
	return simulation.Search{Most: 2, Case: world.Case{
		Name: "strict", Messages: []world.Message{sold(2, world.TakesDays)}, People: true, Strict: true,
	}}
}

func TestASearchThatMergesStatesFindsWhatOneWithoutMergingFinds(t *testing.T) {
	t.Parallel()
	s, lab, without := strict(), world.NewLab(), 0
	all := stage.Explore(s.Most, func(_ stage.Tape, _ int, choose stage.Choose) {
		if lab.NewWorld(s.Case, choose).Run() != nil {
			without++
		}
	})
	r := simulation.Run([]simulation.Search{s}, nil)
	found := r.Worst != nil && r.Worst.Violation.Invariant == oracle.AsAllowed
	if without == 0 || !found || r.Schedules >= all || r.Merged == 0 {
		t.Errorf("%d of %d schedules break an invariant; merged: %d schedules, %d merged, worst %v",
			without, all, r.Schedules, r.Merged, r.Worst)
	}
}

func TestASearchEndsWithTheFewestDeviationsThatBreakTheInvariant(t *testing.T) {
	t.Parallel()
	all := []simulation.Search{strict()}
	until, other := simulation.Until(oracle.AsAllowed, all), simulation.Until(oracle.SameHistory, all)
	if until.Worst == nil || until.Worst.Tape.Deviations() != 1 || until.Schedules >= other.Schedules {
		t.Errorf("got %v after %d schedules, want one deviation, and fewer than %d",
			until.Worst, until.Schedules, other.Schedules)
	}
	if other.Worst == nil || other.Worst.Violation.Invariant != oracle.AsAllowed || other.Worst.Tape.Deviations() != 1 {
		t.Errorf("got %v from a search that does not end early, want the same invariant", other.Worst)
	}
}

func TestTheShortestFindingNamesOnlyTheTroubleThatItNeeds(t *testing.T) {
	t.Parallel()
	other := sold(2, world.Declined)
	other.ID = "ORD-2"
	c := world.Case{
		Messages: []world.Message{sold(2, world.TakesDays), sold(2, world.TakesDays), other},
		People:   true, Strict: true, KeyLife: -1, Gap: oracle.Visibility + 1, Name: "strict",
	}
	r := simulation.Run([]simulation.Search{{Case: c, Most: 1}}, nil)
	if r.Worst == nil {
		t.Fatal("no order was canceled")
	}
	f := simulation.Shortest(r.Worst.Case, r.Worst.Tape, r.Worst.Violation)
	if d := cmp.Diff(f.Needs(), []string{"cancel in the Dashboard"}); d != "" {
		t.Errorf("(-got +want)\n%s\n%s", d, f)
	}
	if !strings.Contains(f.String(), "\nNeeds: cancel in the Dashboard\n") {
		t.Errorf("got\n%s", f)
	}
}

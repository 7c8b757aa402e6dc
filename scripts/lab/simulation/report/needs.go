package report

import (
	"cmp"
	"slices"

	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/world"
)

// Needs returns the kinds of trouble in a finding, sorted: its deviations, and what is
// unusual about its case. After simulation.Shortest, which tries to leave out each of
// them, these are the kinds without which the invariant holds.
func (f Finding) Needs() []string {
	w := world.NewLab().NewWorld(f.Case, f.Tape.Chooser())
	w.Run()
	kinds := append(w.Deviations(), Oddities(f.Case)...)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Oddities returns what is unusual about a case before anything has happened in it.
func Oddities(c world.Case) (all []string) {
	add := func(is bool, kind string) {
		if is {
			all = append(all, kind)
		}
	}
	add(c.Gap < oracle.Visibility && !c.Restless, "delivered again after "+c.Gap.String())
	add(c.Gap > oracle.Visibility, "a pause of "+c.Gap.String())
	add(c.KeyLife > 0, "keys that live "+c.KeyLife.String())
	add(c.KeyLife < 0, "keys that are never kept")
	add(c.Receives > 0, "few receives before the dead-letter queue")
	add(c.Batch > 1 && !c.FIFO, "a batch")
	add(c.FIFO, "a FIFO group")
	add(c.Webhooks, "webhooks")
	add(c.Reconcile, "reconcile runs")
	add(c.Publish, "publications")
	for i, m := range c.Messages {
		add(m.Poison != "", "a message that is no order")
		add(m.Poison == "" && m.Method != world.Visa && m.Method != world.Mastercard, oddMethod(m.Method))
		for _, earlier := range c.Messages[:i] {
			add(earlier == m, "an order sent twice")
			add(earlier.ID == m.ID && earlier != m, "another content under the same id")
			add(earlier.ID != m.ID, "another order")
		}
	}
	return all
}

func oddMethod(method string) string {
	known := map[string]string{
		world.Declined: "a declined card", world.NeedsAuth: "a bank that wants the customer",
		world.TakesDays: "a bank that takes days",
	}
	return cmp.Or(known[method], "a card that does not exist")
}

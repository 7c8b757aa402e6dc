package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/simulation/report"
)

// showBugs prints which faults each planted bug needs, which bugs the simulation cannot
// find, and which faults no planted bug needs.
func showBugs(out io.Writer, all []guards.Guard, r report.Report) error {
	seen, unseen := split(all)
	t := newWideTable("planted bug", "breaks", "faults that it needs")
	for _, g := range seen {
		t.AppendRow(table.Row{g.Name, g.Invariant, g.Needs})
	}
	u := newWideTable("planted bug outside the simulation", "breaks", "the test that finds it")
	for _, g := range unseen {
		u.AppendRow(table.Row{g.Name, g.Invariant, g.Catcher})
	}
	_, err := fmt.Fprintf(out,
		"%s\n%s\n%d planted bugs: the simulation finds %d, named tests find %d (make break GUARD=NAME shows one)\n",
		t.Render(), u.Render(), len(all), len(seen), len(unseen))
	if spare := unneeded(seen, r); err == nil && len(spare) > 0 {
		_, err = fmt.Fprintf(out, "faults that no planted bug needs: %s\n", strings.Join(spare, "; "))
	}
	return err
}

// split separates the bugs that the simulation finds from those that a named test finds.
func split(all []guards.Guard) (seen, unseen []guards.Guard) {
	for _, g := range all {
		if g.Catcher.IsSimulation() {
			seen = append(seen, g)
		} else {
			unseen = append(unseen, g)
		}
	}
	return seen, unseen
}

// unneeded returns the faults of a run without which every planted bug would still be
// found.
func unneeded(seen []guards.Guard, r report.Report) (kinds []string) {
	for _, c := range report.Unusual(r.Tally) {
		if !slices.ContainsFunc(seen, func(g guards.Guard) bool { return needs(g, c.What) }) {
			kinds = append(kinds, c.What)
		}
	}
	return kinds
}

// needs reports whether a bug needs a kind of fault, or a special case of it.
func needs(g guards.Guard, kind string) bool {
	return slices.ContainsFunc(strings.Split(g.Needs, "; "), func(need string) bool {
		return need == kind || strings.HasPrefix(need, kind+": ")
	})
}

// newWideTable returns a table whose last column wraps.
func newWideTable(header ...any) table.Writer { //nolint:ireturn // as the library has it
	t := newTable(header...)
	t.SetColumnConfigs([]table.ColumnConfig{{Number: len(header), WidthMax: 90}})
	return t
}

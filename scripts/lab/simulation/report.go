package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// Report is what a run has searched, and the worst that it found.
type Report struct {
	Schedules int // of searches
	Drawn     int // random worlds
	Merged    int // schedules that ended in a state from which everything had been searched
	Tally     world.Tally
	Worst     *Finding
}

// Add adds another report.
func (r *Report) Add(o Report) {
	r.Schedules += o.Schedules
	r.Drawn += o.Drawn
	r.Merged += o.Merged
	r.Tally.Add(o.Tally)
	if o.Worst != nil && (r.Worst == nil || o.Worst.compare(*r.Worst) < 0) {
		r.Worst = o.Worst
	}
}

// Finding is a schedule that broke an invariant.
type Finding struct {
	Case      world.Case
	Tape      stage.Tape
	Replay    string // the argument of --replay that shows it again
	Violation stage.Violation
	History   stage.History
	Seeded    bool // its world is random
	After     int  // schedules of its search, or random worlds, until the first violation
}

// compare orders findings. Of random worlds the first one comes first. Of schedules a
// double charge comes first, then the one with fewer deviations, then the more serious
// invariant, then the shorter history.
func (f Finding) compare(o Finding) int {
	if f.Seeded && o.Seeded {
		return cmp.Compare(f.After, o.After)
	}
	rank := func(f Finding) []int {
		place := slices.Index(oracle.Invariants(), f.Violation.Invariant)
		return []int{min(place, 1), f.Tape.Deviations(), place, len(f.History)}
	}
	return cmp.Or(slices.Compare(rank(f), rank(o)), cmp.Compare(f.Replay, o.Replay))
}

// Needs returns the kinds of trouble in a finding, sorted: its deviations, and what is
// unusual about its case. After Shortest, which tries to leave out each of them, these
// are the kinds without which the invariant holds.
func (f Finding) Needs() []string {
	w := world.NewLab().NewWorld(f.Case, f.Tape.Chooser())
	w.Run()
	kinds := w.Deviations()
	for _, t := range f.Case.Traits() {
		kinds = append(kinds, t.Name)
	}
	slices.Sort(kinds)
	return slices.DeleteFunc(slices.Compact(kinds), func(k string) bool { return k == "" })
}

// String returns the case, the history, the violation and what it needs, in the form that
// guards/break parses.
func (f Finding) String() string {
	needs := cmp.Or(strings.Join(f.Needs(), "; "), "nothing unusual")
	return fmt.Sprintf("%s (found after %d):\n\n%s\n\n%s\nNeeds: %s\n",
		f.Case.Name, f.After, f.History, f.Violation, needs)
}

// Replay runs a world again, by its name in a Finding: 42 is the random world of a seed,
// pairs/7/000100 a schedule of the search at place 7 of Deep(2). It returns its history
// and, if an invariant is broken, the shortest finding.
func Replay(name string) (stage.History, *Finding, error) {
	c, choose, err := named(name)
	if err != nil {
		return nil, nil, fmt.Errorf("replay %q: want a seed, or a schedule such as pairs/7/000100", name)
	}
	w := world.NewLab().NewWorld(c, choose).KeepHistory()
	broken := w.Run()
	if broken == nil {
		return w.History(), nil, nil
	}
	f := Shortest(c, w.Tape(), *broken)
	f.Replay = name
	return w.History(), &f, nil
}

func named(name string) (c world.Case, choose stage.Choose, err error) {
	list, schedule, is := strings.Cut(name, "/")
	if !is {
		seed, err := strconv.ParseUint(name, 10, 64)
		if err == nil {
			c, choose = Drawn(seed)
		}
		return c, choose, err
	}
	searches := map[string][]Search{"scenario": Scenarios(), "pairs": Deep(2), "triples": Deep(3)}[list]
	at, hex, _ := strings.Cut(schedule, "/")
	place, err := strconv.Atoi(at)
	var tape []byte
	if err == nil && hex != "" {
		_, err = fmt.Sscanf(hex, "%x", &tape)
	}
	if err != nil || place < 0 || place >= len(searches) {
		return c, nil, fmt.Errorf("no schedule %s", name)
	}
	return searches[place].Case, stage.Tape(tape).Chooser(), nil
}

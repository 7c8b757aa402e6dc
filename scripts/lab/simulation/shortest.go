package simulation

import (
	"slices"
	"strings"

	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// Shortest shrinks a schedule that broke an invariant: its choices, the messages that it
// does not need, and what is unusual about its case.
func Shortest(c world.Case, t stage.Tape, v stage.Violation) Finding {
	l := world.NewLab()
	name := "shrunk from " + strings.TrimPrefix(c.Name, "shrunk from ")
	breaks := func(c world.Case, t stage.Tape) bool {
		broken := l.NewWorld(c, t.Chooser()).Run()
		return broken != nil && broken.Invariant == v.Invariant
	}
	simpler := func(c world.Case, t stage.Tape) func(yield func(world.Case, stage.Tape) bool) {
		return func(yield func(world.Case, stage.Tape) bool) {
			for _, simple := range slices.Concat(fewerMessages(c), plainer(c)) {
				if !yield(simple, t) {
					return
				}
				for _, cues := range variants(cuesOf(l, c, t)) {
					if !yield(simple, perform(l, simple, cues)) {
						return
					}
				}
			}
		}
	}
	c, t = stage.Shortest(c, t, breaks, simpler)
	f := finding(l, c, t, v)
	f.Case.Name = name
	if broken := l.NewWorld(c, t.Chooser()).Run(); broken != nil {
		f.Violation = *broken
	}
	return f
}

func fewerMessages(c world.Case) (all []world.Case) {
	for i := range slices.Backward(c.Messages) {
		if len(c.Messages) > 1 {
			fewer := c
			fewer.Messages = slices.Delete(slices.Clone(c.Messages), i, i+1)
			all = append(all, fewer)
		}
	}
	return all
}

func plainer(c world.Case) (all []world.Case) {
	for _, t := range c.Traits() {
		if plain := c; t.Remove != nil {
			t.Remove(&plain)
			all = append(all, plain)
		}
	}
	return all
}

// cue is a deviation by its description, because the numbers of the options differ in a
// world with fewer messages.
type cue struct {
	what  string
	after int // how often it was an option since the previous deviation
}

// cuesOf runs a schedule and returns the cues of its deviations.
func cuesOf(l *world.Lab, c world.Case, t stage.Tape) (all []cue) {
	var w *world.World
	var before []string // options since the last deviation
	play := t.Chooser()
	w = l.NewWorld(c, func(k stage.Kind, n int) int {
		i := play(k, n)
		options := w.Options(n)
		if i == 0 {
			before = append(before, options...)
			return 0
		}
		after := 0
		for _, o := range before {
			if o == options[i] {
				after++
			}
		}
		all, before = append(all, cue{what: options[i], after: after}), nil
		return i
	})
	w.Run()
	return all
}

// perform runs another case with the same cues, and returns the resulting schedule.
func perform(l *world.Lab, c world.Case, cues []cue) stage.Tape {
	var w *world.World
	seen := 0
	w = l.NewWorld(c, func(_ stage.Kind, n int) int {
		if len(cues) == 0 {
			return 0
		}
		i := slices.Index(w.Options(n), cues[0].what)
		if i < 1 {
			return 0
		}
		if seen++; seen <= cues[0].after {
			return 0
		}
		cues, seen = cues[1:], 0
		return i
	})
	w.Run()
	return w.Tape().Trimmed()
}

// mostWaits is how many chances to take a cue may pass in a simpler case.
const mostWaits = 6

// variants returns cues that may break the same invariant in a simpler case: the same
// ones, each at the first chance, and each one alone earlier or later.
func variants(cues []cue) [][]cue {
	eager := slices.Clone(cues)
	for i := range eager {
		eager[i].after = 0
	}
	all := [][]cue{cues, eager}
	for i := range cues {
		for after := range mostWaits {
			for _, base := range [][]cue{cues, eager} {
				other := slices.Clone(base)
				other[i].after = after
				all = append(all, other)
			}
		}
	}
	return all
}

package simulation

import (
	"fmt"
	"slices"

	"orderonce/scripts/lab/simulation/schedule"
)

// cue says what a choice was and where, and not its number among the ways: in a world
// with fewer messages the numbers are others.
type cue struct {
	what  string
	after int // how often it could have been taken before, since the last one was
}

// cueOf describes a choice before it is made.
func (w *World) cueOf(y way) string {
	at := ""
	if w.current != nil {
		at = string(w.current.at.name)
	}
	if y.k != nil && y.k != w.current {
		at += fmt.Sprintf(", %s (frozen: %t)", y.k.at.name, y.k.frozen)
	}
	if y.does == delivers || y.does == waits { // by which clock, or for how long
		at += fmt.Sprintf(", %d", y.n)
	}
	return w.trouble(y) + " at " + at
}

const outOfOrder = "delivery out of order"

// offers lists the cues of the choices that a world has now, the usual one first.
func (w *World) offers(n int) []string {
	all := make([]string, n)
	for i := 1; i < n; i++ {
		all[i] = outOfOrder
		if !w.receiving {
			all[i] = w.cueOf(w.lab.ways[i])
		}
	}
	return all
}

// cues plays a schedule and lists the cues of what was not usual in it.
func (l *Lab) cues(c Case, t schedule.Tape) (all []cue) {
	var w *World
	var before []string // offers since the last cue
	play := t.Chooser()
	w = l.World(c, func(n int) int {
		i := play(n)
		offers := w.offers(n)
		if i == 0 {
			before = append(before, offers...)
			return 0
		}
		after := 0
		for _, o := range before {
			after += int(bit(o == offers[i]))
		}
		all, before = append(all, cue{what: offers[i], after: after}), nil
		return i
	})
	w.Run()
	return all
}

// perform plays another case with the same cues, and returns the schedule that comes of
// it.
func (l *Lab) perform(c Case, cues []cue) (schedule.Tape, *Violation) {
	var w *World
	seen := 0
	w = l.World(c, func(n int) int {
		if len(cues) == 0 {
			return 0
		}
		i := slices.Index(w.offers(n), cues[0].what)
		if i < 1 {
			return 0
		}
		if seen++; seen <= cues[0].after {
			return 0
		}
		cues, seen = cues[1:], 0
		return i
	})
	broken := w.Run()
	return w.tape.Trimmed(), broken
}

// mostWaits is how long a cue is waited for, in chances to take it, if the story is to be
// told with fewer messages.
const mostWaits = 6

// retold lists cues that may tell the same story in a simpler world: the same ones, each
// taken at the first chance, and each one alone taken earlier or later.
func retold(cues []cue) [][]cue {
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

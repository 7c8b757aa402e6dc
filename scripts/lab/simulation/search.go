// Package simulation searches for a world in which an order is charged twice, lost or
// reported wrongly. It decides which cases and schedules are worth a run: all schedules
// with few deviations of small cases, and random worlds. It shrinks what it finds, and
// replays it.
//
// Package stage chooses and takes the steps, package world runs the product, package
// oracle decides what is correct. This package refuses to know any of that.
//
// Start with cases.go (the cases that are searched), draw.go (the random ones), search.go
// (the search), shortest.go (how a finding is shrunk) and report.go (what it says).
package simulation

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// Search is a case and the largest number of deviations of its schedules.
type Search struct {
	world.Case

	Most int

	list  string // the list that it is in, as ReplaySchedule names it
	place int    // in this list
}

// Run explores every search, on all processors. It calls progress, if not nil, with the
// number of finished searches.
func Run(searches []Search, progress func(done int)) Report {
	return inParallel(len(searches), progress, func(l *world.Lab, i int) Report {
		return explore(l, searches[i])
	})
}

// Until explores the searches without a deviation, then with one, and so on, until the
// invariant is broken: a bug that shows early costs no full search. Nothing breaks "".
func Until(broken stage.Invariant, searches []Search) (total Report) {
	if broken == "" {
		return Run(searches, nil)
	}
	for most := 0; ; most++ {
		shallow := slices.Clone(searches)
		for i := range shallow {
			shallow[i].Most = min(shallow[i].Most, most)
		}
		shallow = slices.DeleteFunc(shallow, func(s Search) bool { return s.Most < most })
		total.Add(Run(shallow, nil))
		if len(shallow) == 0 || total.Worst != nil && total.Worst.Violation.Invariant == broken {
			return total
		}
	}
}

// inParallel does n pieces of work on all processors and adds up their reports.
func inParallel(
	n int, progress func(done int), work func(l *world.Lab, i int) Report,
) (total Report) {
	var mu sync.Mutex
	done := 0
	stage.Parallel(n, world.NewLab, func(l *world.Lab, i int) {
		r := work(l, i)
		mu.Lock()
		defer mu.Unlock()
		total.Add(r)
		if done++; progress != nil {
			progress(done)
		}
	})
	return total
}

// explore runs every schedule of a search. It ends a schedule early if it is, after its
// last deviation, in a state from which another one has continued with as many deviations
// left.
func explore(l *world.Lab, s Search) (r Report) {
	seed, seen, first := maphash.MakeSeed(), map[uint64]int{}, 0
	r.Schedules = stage.Explore(s.Most, func(t stage.Tape, left int, choose stage.Choose) {
		w := l.NewWorld(s.Case, choose)
		broken := w.RunUntil(func() bool {
			if s.Most < 2 || len(w.Tape()) < len(t) {
				return false
			}
			state := w.Digest(seed)
			if seen[state] > left {
				r.Merged++
				return true
			}
			seen[state] = left + 1
			return false
		})
		r.Tally.Add(w.Tally())
		if broken == nil {
			return
		}
		first = cmp.Or(first, r.Tally[world.Worlds])
		f := Finding{Case: s.Case, Tape: t, Violation: *broken}
		if r.Worst != nil && f.compare(*r.Worst) > 0 {
			return
		}
		f = finding(l, s.Case, t, *broken)
		f.Replay = fmt.Sprintf("%s/%d/%x", s.list, s.place, []byte(t))
		r.Add(Report{Worst: &f})
	})
	if r.Worst != nil {
		r.Worst.After = first
	}
	return r
}

// finding runs a schedule that broke an invariant once more and keeps its history. It
// copies the tape, which a search overwrites.
func finding(l *world.Lab, c world.Case, t stage.Tape, v stage.Violation) Finding {
	w := l.NewWorld(c, t.Chooser()).KeepHistory()
	w.Run()
	return Finding{Case: c, Tape: slices.Clone(t), Violation: v, History: w.History()}
}

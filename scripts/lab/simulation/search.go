package simulation

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"orderonce/scripts/lab/simulation/schedule"
)

// Finding is a schedule that broke a promise, as short as it could be made.
type Finding struct {
	Case      Case
	Tape      schedule.Tape
	Replay    string // what the command wants to know to show it again
	Violation Violation
	History   History
	seeded    bool
	After     int // schedules of its search, or drawn worlds, until the first broken promise
}

// compare puts the first drawn world first; of schedules, a double charge before all
// else, then the simpler story, then the graver promise, then the shorter story.
func (f Finding) compare(o Finding) int {
	if f.seeded && o.seeded {
		return cmp.Compare(f.After, o.After)
	}
	rank := func(f Finding) []int {
		gravity := slices.Index(Invariants(), f.Violation.Invariant)
		return []int{min(gravity, 1), f.Tape.Deviations(), gravity, len(f.History)}
	}
	return cmp.Or(slices.Compare(rank(f), rank(o)), cmp.Compare(f.Replay, o.Replay))
}

// String is the story: the case, the history, the promise and what it takes to break it,
// in the form that guards/break reads.
func (f Finding) String() string {
	needs := strings.Join(f.Needs(), "; ")
	return fmt.Sprintf("%s (found after %d):\n\n%s\n\n%s\nNeeds: %s\n",
		f.Case.Name, f.After, f.History, f.Violation, cmp.Or(needs, "nothing unusual"))
}

// Report is what a run has gone through, and the worst that it found.
type Report struct {
	Schedules int // of searches
	Drawn     int // worlds that were drawn
	Merged    int // schedules that came to a state from which everything had been searched
	Tally     Tally
	Worst     *Finding
}

// add puts two reports together.
func (r *Report) add(o Report) {
	r.Schedules += o.Schedules
	r.Drawn += o.Drawn
	r.Merged += o.Merged
	r.Tally.add(o.Tally)
	if o.Worst != nil && (r.Worst == nil || o.Worst.compare(*r.Worst) < 0) {
		r.Worst = o.Worst
	}
}

// Search is a case and how far from the usual course its schedules may go.
type Search struct {
	Case
	Most int

	list  string // of searches that it is in, as ReplaySchedule knows it
	place int    // in this list
}

// Run explores every search, as many at once as there are processors. progress is told of
// each that is over; nil is nobody.
func Run(searches []Search, progress func(done int)) (total Report) {
	return inParallel(len(searches), progress, func(l *Lab, i int) Report { return l.explore(searches[i]) })
}

// inParallel does n pieces of work on all processors and adds up their reports.
func inParallel(n int, progress func(done int), work func(l *Lab, i int) Report) (total Report) {
	var (
		wg         sync.WaitGroup
		mu         sync.Mutex
		next, done atomic.Int64
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			l := NewLab()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				r := work(l, i)
				mu.Lock()
				total.add(r)
				if progress != nil {
					progress(int(done.Add(1)))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return total
}

// explore visits every schedule of a search. It gives a schedule up where it comes,
// behind its last deviation, to a state from which another has gone on with as many
// deviations left.
func (l *Lab) explore(s Search) (r Report) {
	seed, seen, first := maphash.MakeSeed(), map[uint64]int8{}, 0
	r.Schedules = schedule.Explore(s.Most, func(t schedule.Tape, choose schedule.Choose) {
		w := l.World(s.Case, choose)
		left := int8(s.Most - t.Deviations() + 1) //nolint:gosec // G115: a few
		broken := w.RunUntil(func() bool {
			if s.Most < 2 || len(w.tape) < len(t) {
				return false
			}
			state := w.digest(seed)
			if seen[state] >= left {
				r.Merged++
				return true
			}
			seen[state] = left
			return false
		})
		r.Tally.add(w.tally())
		if broken == nil {
			return
		}
		first = cmp.Or(first, r.Tally.Worlds)
		f := Finding{Case: s.Case, Tape: t, Violation: *broken}
		if r.Worst != nil && f.compare(*r.Worst) > 0 {
			return
		}
		f = l.find(s.Case, t, *broken, fmt.Sprintf("%s/%d/%x", s.list, s.place, []byte(t)))
		r.add(Report{Worst: &f})
	})
	if r.Worst != nil {
		r.Worst.After = first
	}
	return r
}

// find plays a tape that broke a promise once more, with its history. The finding has a
// copy of the tape, which a search overwrites.
func (l *Lab) find(c Case, t schedule.Tape, v Violation, replay string) Finding {
	w := l.World(c, t.Chooser()).Tell()
	w.Run()
	return Finding{Case: c, Tape: slices.Clone(t), Replay: replay, Violation: v, History: w.History()}
}

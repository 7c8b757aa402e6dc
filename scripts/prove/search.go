package prove

import (
	"cmp"
	"slices"
	"sync"

	"orderonce/adapters/sqs"
)

// Finding is a schedule that broke a promise.
type Finding struct {
	Case       string
	place      int // of the case among the searches
	Deviations int // from the usual course of things
	Violation  Violation
	History    History
}

// compare puts a double charge before all else, then the simpler story, then the graver promise, then the shorter story.
func (f Finding) compare(o Finding) int {
	rank := func(f Finding) []int {
		gravity := slices.Index(Invariants(), f.Violation.Invariant)
		return []int{min(gravity, 1), f.Deviations, gravity, len(f.History)}
	}
	return cmp.Or(slices.Compare(rank(f), rank(o)), cmp.Compare(f.place, o.place))
}

// Search is a case and how far from the usual course its schedules may go.
type Search struct {
	Case
	Most int
}

// Run explores every search at once. It returns how many schedules there were, and the worst finding or nil.
func Run(searches []Search) (schedules int, worst *Finding) {
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		decoder = sqs.NewDecoder()
	)
	for place, s := range searches {
		wg.Go(func() {
			n, found := s.run(decoder, place)
			mu.Lock()
			defer mu.Unlock()
			schedules += n
			if found != nil && (worst == nil || found.compare(*worst) < 0) {
				worst = found
			}
		})
	}
	wg.Wait()
	return schedules, worst
}

func (s Search) run(d *sqs.Decoder, place int) (schedules int, worst *Finding) {
	schedules = Explore(s.Most, func(deviations int, choose Choose) {
		broken, history := New(d, s.Case, choose).Run()
		if broken == nil {
			return
		}
		f := Finding{s.Name, place, deviations, *broken, history}
		if worst == nil || f.compare(*worst) < 0 {
			worst = &f
		}
	})
	return schedules, worst
}

package stage

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Scenario is a world before anything has happened in it.
type Scenario struct {
	Name string
	// Play runs the world on a stage, and reports what is broken to it.
	Play func(s *Stage)
}

// Epoch is when worlds begin.
func Epoch() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// Finding is a schedule that broke an invariant.
type Finding struct {
	Name      string
	Tape      Tape
	Violation Violation
	History   History
}

// String returns the scenario, the history and the violation.
func (f Finding) String() string {
	return fmt.Sprintf("%s:\n\n%s\n\n%s\n", f.Name, f.History, f.Violation)
}

// Report is what a search found.
type Report struct {
	Schedules, Steps int
	Found            *Finding // the simplest schedule that breaks something, or nil
}

// Run runs one schedule of the scenario, and keeps its history in h if it is not nil. It
// returns the stage as it was at the end.
func (c Scenario) Run(ctx context.Context, p *Pool, choose Choose, h *History) *Stage {
	s := &Stage{Context: ctx, history: h}
	s.Schedule(p, choose, Epoch())
	c.Play(s)
	s.End()
	return s
}

// Tape returns the choices so far.
func (s *Stage) Tape() Tape { return s.tape }

// Search runs every schedule of the scenario with at most this many deviations, up to the
// first that breaks something.
func (c Scenario) Search(ctx context.Context, most int) (r Report) {
	var broken Tape
	var why *Violation
	pool := NewPool()
	Explore(most, func(t Tape, _ int, choose Choose) {
		if why != nil {
			return
		}
		s := c.Run(ctx, pool, choose, nil)
		r.Schedules++
		r.Steps += s.Steps
		if why = s.Broken; why != nil {
			broken = slices.Clone(t)
		}
	})
	if why != nil {
		f := c.Shortest(ctx, broken, why.Invariant)
		r.Found = &f
	}
	return r
}

// Shortest shrinks a schedule that breaks an invariant.
func (c Scenario) Shortest(ctx context.Context, t Tape, i Invariant) Finding {
	pool := NewPool()
	f := Finding{Name: c.Name}
	f.Tape = Shrink(t, func(t Tape) bool {
		broken := c.Run(ctx, pool, t.Chooser(), nil).Broken
		return broken != nil && broken.Invariant == i
	})
	if broken := c.Run(ctx, pool, f.Tape.Chooser(), &f.History).Broken; broken != nil {
		f.Violation = *broken
	}
	return f
}

// Parallel does n pieces of work on all processors. A pool belongs to one of them.
func Parallel(n int, work func(p *Pool, i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			pool := NewPool()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				work(pool, i)
			}
		})
	}
	wg.Wait()
}

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
	return c.run(&Stage{Context: ctx, history: h}, p, choose)
}

func (c Scenario) run(s *Stage, p *Pool, choose Choose) *Stage {
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
	Explore(most, func(t Tape, left int, choose Choose) {
		if why != nil {
			return
		}
		s := &Stage{Context: ctx}
		if left == 0 { // what follows need not be offered
			s.defaultFrom = len(t)
		}
		s = c.run(s, pool, choose)
		r.Schedules++
		r.Steps += s.Steps
		if why = s.Broken; why != nil {
			broken = slices.Clone(t)
		}
	})
	if why != nil {
		r.Found = new(c.Shortest(ctx, broken, why.Invariant))
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

// Turn returns whether the i-th check of many has its turn: "17/3" gives it to one of
// three, "18/3" and "19/3" to the others, and "" to all. CI counts by the commit.
func Turn(text string) (func(i int) bool, error) {
	turn, turns := 0, 1
	n, _ := fmt.Sscanf(text, "%d/%d", &turn, &turns)
	if text != "" && (n != 2 || turn < 0 || turns < 1) {
		return nil, fmt.Errorf("turn %q: want one such as 17/3", text)
	}
	return func(i int) bool { return i%turns == turn%turns }, nil
}

// Parallel does n pieces of work on all processors. Each has a state of its own.
func Parallel[S any](n int, newState func() S, work func(s S, i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			state := newState()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				work(state, i)
			}
		})
	}
	wg.Wait()
}

// Shortest shrinks a case and a schedule while they break the same invariant. simpler
// yields cases that lack something, each with a schedule.
func Shortest[C any]( //nolint:ireturn // C is a struct at every call
	c C, t Tape, breaks func(C, Tape) bool, simpler func(C, Tape) func(yield func(C, Tape) bool),
) (C, Tape) {
	shrink := func(c C, t Tape) Tape { return Shrink(t, func(t Tape) bool { return breaks(c, t) }) }
	t = shrink(c, t)
	for again := true; again; {
		again = false
		for simple, tape := range simpler(c, t) {
			if breaks(simple, tape) {
				c, t, again = simple, shrink(simple, tape), true
				break
			}
		}
	}
	return c, t
}

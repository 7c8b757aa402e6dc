package refunds

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"orderonce/domain/refund"
	"orderonce/scripts/lab/stage"
)

// Search is a range of random worlds.
type Search struct {
	Class  Class
	Seed   uint64 // of the first one
	Worlds int
}

// Report is what a search found.
type Report struct {
	Worlds, Steps int
	Unknown       int      // refunds that wait for a person
	Excused       int      // worlds in which a refund was made twice, and I18 excuses it
	Broken        int      // worlds
	Best          *Finding // the one with the fewest messages
}

// Finding is a world that broke an invariant, with its shortest history.
type Finding struct {
	stage.Finding

	Seed uint64
	Case Case
}

// Run runs the worlds on all processors.
func (s Search) Run(ctx context.Context) Report {
	var mu sync.Mutex
	var total Report
	stage.Parallel(s.Worlds, stage.NewPool, func(p *stage.Pool, n int) {
		seed := s.Seed + uint64(n) //nolint:gosec // G115: not negative
		w := s.run(ctx, p, seed, nil)
		mu.Lock()
		total.add(seed, w)
		mu.Unlock()
	})
	if total.Best != nil {
		total.Best.shrink(ctx)
	}
	return total
}

// Replay runs the random world of a seed again.
func (s Search) Replay(ctx context.Context, seed uint64) (history stage.History, f *Finding) {
	var r Report
	r.add(seed, s.run(ctx, stage.NewPool(), seed, &history))
	if r.Best != nil {
		r.Best.shrink(ctx)
	}
	return history, r.Best
}

// run runs the world of a seed, and keeps its history in h if it is not nil.
func (s Search) run(ctx context.Context, p *stage.Pool, seed uint64, h *stage.History) (w *World) {
	c, choose := fromSeed(seed, s.Class)
	c.scenario(func(set *World) { w = set }).Run(ctx, p, choose, h)
	return w
}

// scenario returns a case as a scenario. It calls set up with its world.
func (c Case) scenario(setUp func(w *World)) stage.Scenario {
	return stage.Scenario{Name: c.Name, Play: func(s *stage.Stage) {
		w := newWorld(s, c)
		setUp(w)
		w.play()
	}}
}

// Search runs every schedule of a case of Every with at most this many faults, up to the
// first that breaks an invariant.
func (c Case) Search(ctx context.Context, most int) stage.Report {
	return c.scenario(func(*World) {}).Search(ctx, most)
}

// SearchEvery searches every case at the same time.
func SearchEvery(ctx context.Context, most int) []stage.Report {
	cases := Every()
	reports := make([]stage.Report, len(cases))
	stage.Parallel(len(cases), stage.NewPool, func(_ *stage.Pool, i int) {
		reports[i] = cases[i].Search(ctx, most)
	})
	return reports
}

func (r *Report) add(seed uint64, w *World) {
	r.Worlds++
	r.Steps += w.Steps
	for _, a := range w.oracle.accounts {
		for _, i := range a.Items {
			if i.Status == refund.Unknown {
				r.Unknown++
			}
		}
	}
	v := w.Broken
	if w.oracle.twice && v == nil {
		r.Excused++
	}
	if v != nil {
		r.Broken++
		f := &Finding{stage.Finding{Tape: w.Tape(), Violation: *v}, seed, w.Case}
		if r.Best == nil || f.compare(r.Best) < 0 {
			r.Best = f
		}
	}
}

// compare orders findings: the one with fewer messages and choices first.
func (f *Finding) compare(o *Finding) int {
	return cmp.Or(
		cmp.Compare(len(f.Case.Messages), len(o.Case.Messages)), cmp.Compare(len(f.Tape), len(o.Tape)),
		cmp.Compare(f.Seed, o.Seed),
	)
}

// shrink leaves out the messages, orders and choices that the violation does not need.
func (f *Finding) shrink(ctx context.Context) {
	pool, broken := stage.NewPool(), f.Violation.Invariant
	scenario := func(c Case) stage.Scenario { return c.scenario(func(*World) {}) }
	c, t := stage.Shortest(f.Case, f.Tape, func(c Case, t stage.Tape) bool {
		v := scenario(c).Run(ctx, pool, t.Chooser(), nil).Broken
		return v != nil && v.Invariant == broken
	}, simpler)
	f.Case, f.Finding = c, scenario(c).Shortest(ctx, t, broken)
	f.Name = fmt.Sprintf("%s/%d", c.Class, f.Seed)
}

// simpler yields the cases that lack a message, an order without messages, or an unusual
// trait, with their schedules. The first choices of a tape are those of the messages'
// times.
func simpler(c Case, t stage.Tape) func(yield func(Case, stage.Tape) bool) {
	return func(yield func(Case, stage.Tape) bool) {
		try := func(change func(*Case)) bool {
			s := c
			s.Messages, s.Orders = slices.Clone(c.Messages), slices.Clone(c.Orders)
			change(&s)
			return yield(s, t)
		}
		sent := 0 // choices before those of the messages
		for _, o := range c.Orders {
			if o.Late {
				sent++
			}
		}
		for n := range c.Messages {
			fewer, shorter := c, slices.Clone(t)
			fewer.Messages = slices.Delete(slices.Clone(c.Messages), n, n+1)
			if sent+n < len(t) {
				shorter = slices.Delete(shorter, sent+n, sent+n+1)
			}
			if !yield(fewer, shorter) {
				return
			}
		}
		for n, o := range c.Orders {
			empty := !slices.ContainsFunc(c.Messages, func(m refund.Request) bool { return m.OrderID() == o.ID })
			if empty && len(c.Orders) > 1 && !try(func(s *Case) { s.Orders = slices.Delete(s.Orders, n, n+1) }) ||
				o.Late && !try(func(s *Case) { s.Orders[n].Late = false }) {
				return
			}
		}
		_ = (!c.Keeps || try(func(s *Case) { s.Keeps = false })) &&
			(!c.Takes || try(func(s *Case) { s.Takes = false })) &&
			(c.Lag == 0 || try(func(s *Case) { s.Lag = 0 }))
	}
}

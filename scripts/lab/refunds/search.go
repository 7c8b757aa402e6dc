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
	stage.Scenario{Play: func(s *stage.Stage) {
		w = newWorld(s, c)
		w.play()
	}}.Run(ctx, p, choose, h)
	return w
}

func (c Case) scenario() stage.Scenario {
	return stage.Scenario{Name: c.Name, Play: func(s *stage.Stage) { newWorld(s, c).play() }}
}

// Search runs every schedule of a case of Every with at most this many faults, up to the
// first that breaks an invariant.
func (c Case) Search(ctx context.Context, most int) stage.Report {
	return c.scenario().Search(ctx, most)
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
	c, t := stage.Shortest(f.Case, f.Tape, func(c Case, t stage.Tape) bool {
		v := c.scenario().Run(ctx, pool, t.Chooser(), nil).Broken
		return v != nil && v.Invariant == broken
	}, simpler)
	f.Case, f.Finding = c, c.scenario().Shortest(ctx, t, broken)
	f.Name = fmt.Sprintf("%s/%d", c.Class, f.Seed)
}

// simpler yields the cases that lack a message, an order without messages, or an unusual
// trait, with their schedules. The first choices of a tape are those of the times of late
// orders, and then of the messages.
func simpler(c Case, t stage.Tape) func(yield func(Case, stage.Tape) bool) {
	return func(yield func(Case, stage.Tape) bool) {
		sent := 0
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
		for _, plain := range plainer(c) {
			if !yield(plain, t) {
				return
			}
		}
	}
}

func plainer(c Case) (all []Case) {
	add := func(is bool, change func(*Case)) {
		if is {
			plain := c
			plain.Orders = slices.Clone(c.Orders)
			change(&plain)
			all = append(all, plain)
		}
	}
	for n, o := range c.Orders {
		used := slices.ContainsFunc(c.Messages, func(m refund.Request) bool { return m.OrderID() == o.ID })
		add(!used && len(c.Orders) > 1, func(p *Case) { p.Orders = slices.Delete(p.Orders, n, n+1) })
		add(o.Late, func(p *Case) { p.Orders[n].Late = false })
	}
	add(c.Keeps, func(p *Case) { p.Keeps = false })
	add(c.Takes, func(p *Case) { p.Takes = false })
	add(c.Lag != 0, func(p *Case) { p.Lag = 0 })
	return all
}

// Package refunds searches for a world in which a refund is made twice, lost or called
// wrongly. It runs the real refund.Processor, refund.Refresher and order.Cancellation
// over the stores and the bank of refundtest, which their contract suites test. Workers
// are coroutines that stop before each call, time is a number, and a seed decides
// everything.
//
// Read case.go (what a world starts with), deviation.go (what may happen in it),
// oracle.go (what must hold), world.go and actor.go (how it runs) and search.go (many
// worlds, and the shortest history of a broken one).
package refunds

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"orderonce/domain/refund"
	"orderonce/scripts/lab/stage"
)

// Search is a range of random worlds.
type Search struct {
	Class   Class
	Seed    uint64 // of the first one
	Worlds  int
	Consume Consumer  // nil is the product
	Only    Invariant // the only one that counts; "" is any
}

// Report is what a search found.
type Report struct {
	Worlds, Steps int
	Unknown       int               // refunds that wait for a person
	Excused       int               // worlds in which a refund was made twice, and I18 excuses it
	Broken        map[Invariant]int // worlds
	Best          *Finding          // the one with the fewest messages
}

// Run runs the worlds on all processors.
func (s Search) Run(ctx context.Context) Report {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		next  atomic.Int64
		total = Report{Broken: map[Invariant]int{}}
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < s.Worlds; n = int(next.Add(1)) - 1 {
				seed := s.Seed + uint64(n) //nolint:gosec // G115: not negative
				w := s.world(ctx, seed)
				v := w.Run()
				mu.Lock()
				total.add(s, seed, w, v)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if total.Best != nil {
		total.Best.shrink(ctx, s)
	}
	return total
}

func (s Search) world(ctx context.Context, seed uint64) *World {
	c, choose := fromSeed(seed, s.Class)
	w := newWorld(ctx, c, choose)
	w.consume = s.Consume
	return w
}

// add adds a world.
func (r *Report) add(s Search, seed uint64, w *World, v *Violation) {
	r.Worlds++
	r.Steps += w.steps
	for _, a := range w.oracle.accounts {
		for _, i := range a.Items {
			if i.Status == refund.Unknown {
				r.Unknown++
			}
		}
	}
	if w.oracle.twice && v == nil {
		r.Excused++
	}
	if v != nil && (s.Only == "" || v.Invariant == s.Only) {
		r.Broken[v.Invariant]++
		f := &Finding{Seed: seed, Case: w.Case, Violation: *v, tape: w.choose.tape}
		if r.Best == nil || f.compare(r.Best) < 0 {
			r.Best = f
		}
	}
}

// compare orders findings: the one with fewer messages and choices first.
func (f *Finding) compare(o *Finding) int {
	return cmp.Or(
		cmp.Compare(len(f.Case.Messages), len(o.Case.Messages)), cmp.Compare(len(f.tape), len(o.tape)),
		cmp.Compare(f.Seed, o.Seed),
	)
}

// Finding is a world that broke an invariant, with its shortest history.
type Finding struct {
	Seed      uint64
	Case      Case
	Violation Violation
	History   []Line

	tape stage.Tape
}

// Line is a line of a history.
type Line struct {
	At                time.Duration // since the start of the world
	Who, What, Answer string
}

// Replay runs the random world of a seed again.
func (s Search) Replay(ctx context.Context, seed uint64) (history []Line, f *Finding) {
	w := s.world(ctx, seed)
	w.lines = &history
	if v := w.Run(); v != nil {
		f = &Finding{Seed: seed, Case: w.Case, Violation: *v, tape: w.choose.tape}
		f.shrink(ctx, s)
	}
	return history, f
}

// shrink leaves out the messages, orders and choices that the violation does not need.
func (f *Finding) shrink(ctx context.Context, s Search) {
	run := func(c Case, t stage.Tape, lines *[]Line) *Violation {
		w := newWorld(ctx, c, played(t))
		w.consume, w.lines = s.Consume, lines
		return w.Run()
	}
	breaks := func(c Case, t stage.Tape) bool {
		v := run(c, t, nil)
		return v != nil && v.Invariant == f.Violation.Invariant
	}
	for again := true; again; {
		again = false
		f.tape = stage.Shrink(f.tape, func(t stage.Tape) bool { return breaks(f.Case, t) })
		for _, simpler := range f.simpler() {
			if breaks(simpler.Case, simpler.tape) {
				f.Case, f.tape, again = simpler.Case, simpler.tape, true
				break
			}
		}
	}
	f.History = nil
	if v := run(f.Case, f.tape, &f.History); v != nil {
		f.Violation = *v
	}
}

// simpler returns the findings that lack a message, an order without messages, or an
// oddity. The first choices of a tape are those of the messages' times.
func (f *Finding) simpler() (all []Finding) {
	c, late := f.Case, 0
	add := func(change func(*Case)) *Finding {
		s := Finding{Case: c, tape: slices.Clone(f.tape)}
		s.Case.Messages, s.Case.Orders = slices.Clone(c.Messages), slices.Clone(c.Orders)
		change(&s.Case)
		all = append(all, s)
		return &all[len(all)-1]
	}
	for _, o := range c.Orders {
		if o.Late {
			late++
		}
	}
	for n := range c.Messages {
		s := add(func(s *Case) { s.Messages = slices.Delete(s.Messages, n, n+1) })
		if late+n < len(s.tape) {
			s.tape = slices.Delete(s.tape, late+n, late+n+1)
		}
	}
	for n, o := range c.Orders {
		empty := !slices.ContainsFunc(c.Messages, func(m refund.Request) bool { return m.OrderID() == o.ID })
		if empty && len(c.Orders) > 1 {
			add(func(s *Case) { s.Orders = slices.Delete(s.Orders, n, n+1) })
		}
		if o.Late {
			add(func(s *Case) { s.Orders[n].Late = false })
		}
	}
	if c.Keeps {
		add(func(s *Case) { s.Keeps = false })
	}
	if c.Takes {
		add(func(s *Case) { s.Takes = false })
	}
	if c.Lag > 0 {
		add(func(s *Case) { s.Lag = 0 })
	}
	return all
}

// String returns the case, the history and the violation.
func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n%s (seed %d)\n", f.Case, Table(f.History), f.Violation, f.Seed)
	return b.String()
}

// Table returns a history for a terminal.
func Table(history []Line) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, l := range history {
		_, _ = fmt.Fprintf(t, "%v\t%s\t%s\t%s\n", l.At, l.Who, l.What, l.Answer)
	}
	_ = t.Flush()
	return b.String()
}

package play

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
)

// Options say how large the storm is. Nothing has a default.
type Options struct {
	Script    Script
	Kills     int
	Instances int
	FIFO      bool
	Calm      bool   // no faults and no kills
	Dir       string // for binaries and the log
	Engine    dynamodbtest.Location
	// Progress is told ten times a second how far the storm is. Nil: nobody is.
	Progress func(Progress)
}

// Progress is a look at a running storm.
type Progress struct {
	Phase                              string
	Done, Total                        int // messages
	Deliveries, Kills, Faults, Charges int
	Waiting                            int // messages in the order queue
}

// Outcome is what a storm did to a handler, and what the handler did.
type Outcome struct {
	Handler    Handler
	Count      Count
	Checks     []system.Check // of our own table; none for another handler
	Deliveries int
	Kills      int
	Faults     map[string]int // calls spoiled, by who was how unwell, such as "Stripe outage"
	Redriven   int
	LostDelete int
	Calls      struct{ DynamoDB, Stripe int }
	Took       time.Duration
}

// Broken are the invariants that did not hold.
func (o Outcome) Broken() (broken []system.Check) {
	for _, c := range o.Checks {
		if len(c.Broken) > 0 {
			broken = append(broken, c)
		}
	}
	return broken
}

// The storm's settings that every handler shares. Five receives are what AWS advises at least.
const (
	maxReceives     = 5
	functionTimeout = 2 * time.Second
	visibility      = 3 * time.Second
	largestWave     = 500  // orders that are sent at once
	depth           = 2000 // messages in the queue at which the next wave waits
	// instanceMemory keeps sixteen processes small: frozen ones give nothing back to the system.
	instanceMemory = "18MiB"
)

// storm is one run.
type storm struct {
	Options

	handler Handler
	system  atomic.Pointer[system.System]
	weather *weather
	scribe  *scribe

	phase      atomic.Pointer[string]
	posted     atomic.Int64
	total      int // messages of the script
	deliveries atomic.Int64
	lost       atomic.Int64 // deletes
	kills      atomic.Int64
	redriven   atomic.Int64
}

// Run plays the storm with one handler. Its error says that the storm could not be played or did not end; what the handler did
// wrong is in the outcome.
func Run(ctx context.Context, o Options, h Handler) (Outcome, error) {
	st := &storm{Options: o, handler: h, weather: newWeather(o.Script.Seed)}
	for n := range o.Script.Orders {
		st.total += len(o.Script.messages(n))
	}
	dir := filepath.Join(o.Dir, h.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return Outcome{}, err
	}
	binary, next, err := h.Build(ctx, dir)
	if err != nil {
		return Outcome{}, err
	}
	if st.scribe, err = newScribe(filepath.Join(dir, "function.log")); err != nil {
		return Outcome{}, err
	}
	began := time.Now()
	s, err := system.Start(ctx, st.options(binary))
	if err != nil {
		return Outcome{}, errors.Join(err, st.scribe.Close())
	}
	st.system.Store(s)
	ctx, cancel := s.Function.UntilExit(ctx) // the storm kills functions; one that exits by itself is broken
	defer cancel()
	out, err := st.play(ctx, s, next)
	out.Took = time.Since(began)
	return out, errors.Join(err, s.Close(), st.scribe.Close())
}

func (st *storm) options(binary string) system.Options {
	o := system.Options{
		Binary: binary, Engine: st.Engine, Instances: st.Instances, FIFO: st.FIFO,
		MaxReceives: maxReceives, FunctionTimeout: functionTimeout, Visibility: visibility,
		Output: st.scribe, Observe: st.observe, BeforeStripe: st.weather.onStripe(st.system.Load),
		Duplicate:  func(sqstest.Message) sqstest.Twice { return st.weather.twice(st.Script.Duplicates) },
		LoseDelete: func(sqstest.Message) bool { return st.weather.loses() },
	}
	if st.handler.Options != nil {
		st.handler.Options(&o)
	}
	o.Env = maps.Clone(o.Env)
	if o.Env == nil {
		o.Env = map[string]string{}
	}
	o.Env["GOMEMLIMIT"] = instanceMemory // a program that is not in Go does not mind
	return o
}

func (st *storm) observe(b sqstest.Batch) {
	st.deliveries.Add(int64(len(b.Messages)))
	st.lost.Add(int64(len(b.Lost)))
}

// play is the storm from the first message to the closed books.
func (st *storm) play(ctx context.Context, s *system.System, next string) (Outcome, error) {
	out := Outcome{Handler: st.handler}
	if st.handler.Prepare != nil {
		if err := st.handler.Prepare(ctx, s); err != nil {
			return out, err
		}
	}
	s.Proxy.Before(st.weather.onDynamoDB(s))
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	if st.Progress != nil {
		watch.Go(func() { st.watch(watching, s) })
	}
	err := st.phases(ctx, s, next)
	if err == nil {
		st.enters("closing the books")
		err = s.Function.Close() // nothing may change any more
	}
	if err == nil {
		out.Count, out.Checks, err = audit(ctx, s, st.handler, st.Script, st.scribe.found())
	}
	stop()
	watch.Wait()
	out.Deliveries, out.Kills, out.Redriven = int(st.deliveries.Load()), int(st.kills.Load()), int(st.redriven.Load())
	out.LostDelete = int(st.lost.Load())
	out.Faults = st.weather.report()
	out.Calls.DynamoDB, out.Calls.Stripe = s.Proxy.Total(), stripeCalls(s)
	out.Count.Extra = out.Deliveries - s.Counts().Sent
	return out, err
}

// phases: the storm itself; the dead letters come back after 25 hours, 5 days and 20 days, and once between, because a
// queue keeps a dead letter for 14. The last orders come in on the last day. Then the weather is fine, and everything gets its retries
// while Stripe still repeats what it has stored: an order that only waits for its key to be forgotten is stuck.
func (st *storm) phases(ctx context.Context, s *system.System, next string) error {
	last := st.Script.Orders - st.Script.Orders/lastDay
	if err := st.under(ctx, s, "storm", func() error { return st.post(ctx, s, 0, last, next) }); err != nil {
		return err
	}
	for _, later := range []struct {
		name string
		wait time.Duration
	}{
		{"25 hours later", 25 * time.Hour},
		{"5 days later", 95 * time.Hour},
		{"13 days later", 8 * 24 * time.Hour},
		{"20 days later", 7 * 24 * time.Hour},
	} {
		err := st.under(ctx, s, later.name, func() error { return st.redrive(ctx, s, later.wait) })
		if err != nil {
			return err
		}
	}
	if err := st.under(ctx, s, "the last day", func() error { return st.post(ctx, s, last, st.Script.Orders, next) }); err != nil {
		return err
	}
	for range calmRounds {
		st.enters("fine weather")
		if err := st.redrive(ctx, s, 0); err != nil {
			return err
		}
	}
	return nil
}

const (
	// lastDay is the part of the orders that comes in on the last day: one in so many.
	lastDay = 10
	// calmRounds is how often dead letters come back in fine weather.
	calmRounds = 2
)

// under runs one phase in bad weather.
func (st *storm) under(ctx context.Context, s *system.System, name string, phase func() error) error {
	st.enters(name)
	if st.Calm {
		return phase()
	}
	blowing, stop := context.WithCancel(ctx)
	var wind sync.WaitGroup
	wind.Go(func() { st.weather.blow(blowing, s) })
	wind.Go(func() { st.kill(blowing, s) })
	err := phase()
	stop()
	wind.Wait()
	return err
}

func (st *storm) enters(phase string) { st.phase.Store(&phase) }

// post sends some orders of the script wave by wave, rolls the next version out in the middle of the script, and waits until the
// queue is empty.
func (st *storm) post(ctx context.Context, s *system.System, from, to int, next string) error {
	wave := max(1, min(largestWave, st.Script.Orders/4))
	for ; from < to; from += wave {
		var drafts []sqstest.Draft
		for n := from; n < min(from+wave, to); n++ {
			for _, m := range st.Script.messages(n) {
				drafts = append(drafts, st.draft(m))
			}
		}
		if from <= st.Script.Orders/2 && st.Script.Orders/2 < from+wave {
			if err := s.Function.Replace(next); err != nil {
				return err
			}
		}
		if _, err := s.Post(drafts); err != nil {
			return err
		}
		st.posted.Add(int64(len(drafts)))
		if err := st.until(ctx, s, depth); err != nil {
			return err
		}
	}
	return st.until(ctx, s, 0)
}

func (st *storm) draft(m message) sqstest.Draft {
	d := sqstest.Draft{Body: m.body, Attributes: map[string]sqstest.Attribute{AttrName: sqstest.Text(m.name())}}
	if st.FIFO {
		d.Group, d.DeduplicationID = orderID(m.order), m.name()
	}
	return d
}

// redrive lets time pass and brings the dead letters back.
func (st *storm) redrive(ctx context.Context, s *system.System, wait time.Duration) error {
	s.Advance(wait)
	now := s.Stripe.Now()
	s.Stripe.Machine(func(m *stripetest.Machine) { m.PruneKeys(now) })
	moved, err := s.Redrive()
	st.redriven.Add(int64(moved))
	return errors.Join(err, st.until(ctx, s, 0))
}

// patience is how long nothing may be delivered before the storm is given up; nap is how long nothing happens before the clocks are
// moved on.
const (
	patience = time.Minute
	nap      = 100 * time.Millisecond
	look     = 20 * time.Millisecond
)

// until waits until at most so many messages are in the order queue. Where all that happens is waiting, it moves the clocks.
func (st *storm) until(ctx context.Context, s *system.System, waiting int) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for v := (vigil{delivered: -1}); s.Waiting() > waiting || waiting == 0 && s.Busy(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		idle, over := v.look(s.Busy(), st.deliveries.Load())
		if over {
			return fmt.Errorf("%s: %d messages wait, and nothing was delivered for %v", *st.phase.Load(), s.Waiting(), patience)
		}
		if idle {
			s.Skip()
		}
	}
	return nil
}

// vigil is what was seen of a system by somebody who waits for it.
type vigil struct {
	quiet, silent time.Duration // without work, without a delivery
	delivered     int64
}

// look is one look, and says whether the system only waits for a clock, and whether it is time to give up.
func (v *vigil) look(busy bool, delivered int64) (idle, over bool) {
	v.quiet, v.silent = v.quiet+look, v.silent+look
	if busy {
		v.quiet = 0
	}
	if delivered != v.delivered {
		v.delivered, v.silent = delivered, 0
	}
	if idle = v.quiet >= nap; idle {
		v.quiet = 0
	}
	return idle, v.silent >= patience
}

// kill ends busy instances one by one, evenly over the messages that are done with, so that nobody is killed more often for being slow.
func (st *storm) kill(ctx context.Context, s *system.System) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if st.killIsDue(int(st.posted.Load()+st.redriven.Load()) - s.Waiting()) {
			st.kills.Add(int64(s.Function.Kill(one())))
		}
	}
}

// killIsDue reports whether fewer were killed than the messages that are done with call for.
func (st *storm) killIsDue(done int) bool {
	return int(st.kills.Load()) < st.Kills*done/max(st.total, 1)
}

// one matches the first instance that it is asked about.
func one() func([]byte) bool {
	taken := false
	return func([]byte) bool {
		first := !taken
		taken = true
		return first
	}
}

// watch reports progress.
func (st *storm) watch(ctx context.Context, s *system.System) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		st.Progress(st.progress(s))
	}
}

func (st *storm) progress(s *system.System) Progress {
	p := Progress{
		Phase: *st.phase.Load(), Total: st.total, Waiting: s.Waiting(),
		Deliveries: int(st.deliveries.Load()), Kills: int(st.kills.Load()),
	}
	p.Done = max(0, int(st.posted.Load())-p.Waiting)
	p.Faults = Sum(st.weather.report())
	p.Charges = s.Stripe.Count(stripetest.Confirm)
	return p
}

// Sum adds up the faults of an outcome.
func Sum(faults map[string]int) (n int) {
	for _, some := range faults {
		n += some
	}
	return n
}

func stripeCalls(s *system.System) (n int) {
	for _, e := range []stripetest.Endpoint{stripetest.Create, stripetest.Confirm, stripetest.Read, stripetest.List, stripetest.Cancel} {
		n += s.Stripe.Count(e)
	}
	return n
}

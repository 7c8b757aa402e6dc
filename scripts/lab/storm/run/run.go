package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// Options configure a storm. There are no defaults.
type Options struct {
	Workload  Workload
	Kills     int
	Instances int
	FIFO      bool
	NoFaults  bool   // no faults and no kills
	Dir       string // for binaries and the log
	Engine    dynamodbtest.Location
	Progress  io.Writer // gets a line every ten seconds, unless nil
}

// Outcome is the result of a storm.
type Outcome struct {
	Handler    Handler
	Count      Count
	Checks     []invariants.Result // of the product; nil for another handler
	Deliveries int
	Kills      int // of the handler's processes
	Later      Later
	Refunds    Refunds
	Parts      Parts
	Books      Books          // of the product
	Faults     map[string]int // failed calls, by profile, such as "Stripe outage"
	Redriven   int
	LostDelete int
	Calls      struct{ DynamoDB, Stripe int }
	Took       time.Duration
}

// Broken returns the invariants that were broken.
func (o Outcome) Broken() (broken []invariants.Result) {
	for _, c := range o.Checks {
		if len(c.Broken) > 0 {
			broken = append(broken, c)
		}
	}
	return broken
}

// Settings that every handler shares. AWS recommends at least five receives.
const (
	maxReceives     = 5
	functionTimeout = 2 * time.Second
	visibility      = 3 * time.Second
	largestWave     = 500  // orders sent at once
	depth           = 2000 // messages in the queue above which the next wave waits
	// instanceMemory limits each process: a frozen one returns no memory to the system.
	instanceMemory = "18MiB"
)

// storm is one run.
type storm struct {
	Options

	handler   Handler
	programs  system.Options // of the functions beside that of the order queue
	tool      string         // a program; "" if the handler has none
	system    atomic.Pointer[system.System]
	faults    *injector
	later     later
	refunding refunding
	parts     parts
	canceling atomic.Int64 // cancels by operators under way
	log       *functionLog

	phase      atomic.Pointer[string]
	posted     atomic.Int64
	total      int // messages of the workload
	deliveries atomic.Int64
	lost       atomic.Int64 // deletes
	kills      atomic.Int64
	redriven   atomic.Int64
}

// Storm runs a storm with one handler. An error means that the storm could not run or did
// not end; errors of the handler are in the outcome.
func Storm(ctx context.Context, o Options, h Handler) (Outcome, error) {
	o.Workload.Later = h.Program != nil
	st := &storm{Options: o, handler: h, faults: newInjector(o.Workload.Seed)}
	for n := range o.Workload.Orders {
		st.total += len(o.Workload.messages(n)) + len(o.Workload.refunds(n))
	}
	dir := filepath.Join(o.Dir, h.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return Outcome{}, err
	}
	binary, next, err := st.build(ctx, dir)
	if err != nil {
		return Outcome{}, err
	}
	if st.log, err = newFunctionLog(filepath.Join(dir, "function.log")); err != nil {
		return Outcome{}, err
	}
	began := time.Now()
	s, err := system.Start(ctx, st.options(ctx, binary))
	if err != nil {
		return Outcome{}, errors.Join(err, st.log.Close())
	}
	st.system.Store(s)
	ctx, cancel := untilExit(ctx, s) // the storm kills functions; one that exits by itself is an error
	defer cancel()
	out, err := st.execute(ctx, s, next)
	out.Took = time.Since(began)
	return out, errors.Join(err, s.Close(), st.log.Close())
}

func (st *storm) options(ctx context.Context, binary string) system.Options {
	o := system.Options{
		Binary: binary, Engine: st.Engine, Instances: st.Instances, FIFO: st.FIFO,
		MaxReceives: maxReceives, FunctionTimeout: functionTimeout, Visibility: visibility,
		Output: st.log, Observe: st.observe, BeforeStripe: st.faults.beforeStripe(st.system.Load),
		Duplicate:  func(sqstest.Message) sqstest.Twice { return st.faults.duplicate(st.Workload.Duplicates) },
		LoseDelete: func(sqstest.Message) bool { return st.faults.losesDelete() },
	}
	st.laterOptions(ctx, &o)
	if st.handler.Options != nil {
		st.handler.Options(&o)
	}
	o.Env = maps.Clone(o.Env)
	if o.Env == nil {
		o.Env = map[string]string{}
	}
	o.Env["GOMEMLIMIT"] = instanceMemory // other programs than Go ignore it
	return o
}

func (st *storm) observe(b sqstest.Batch) {
	if len(b.Messages) > 0 && isReceipt(b.Messages[0]) {
		return
	}
	st.deliveries.Add(int64(len(b.Messages)))
	for _, m := range b.Messages {
		if isRefund(m) {
			st.refunding.deliveries.Add(1)
		}
	}
	st.lost.Add(int64(len(b.Lost)))
}

// execute runs the storm from the first message to the audit.
func (st *storm) execute(ctx context.Context, s *system.System, next string) (Outcome, error) {
	out := Outcome{Handler: st.handler}
	if st.handler.Prepare != nil {
		if err := st.handler.Prepare(ctx, s); err != nil {
			return out, err
		}
	}
	s.Proxy.Before(st.faults.beforeDynamoDB(s))
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	if st.Progress != nil {
		watch.Go(func() { st.watch(watching, s) })
	}
	err := st.phases(ctx, s, next)
	if err == nil {
		st.setPhase("audit")
		if err = s.Function.Close(); s.Refund != nil { // nothing may change during the audit
			err = errors.Join(err, s.Refund.Close())
		}
	}
	if err == nil {
		err = st.audit(ctx, s, &out)
	}
	stop()
	watch.Wait()
	out.Deliveries, out.Kills = int(st.deliveries.Load()), int(st.kills.Load())
	out.Refunds.Deliveries = int(st.refunding.deliveries.Load())
	out.Refunds.Kills = int(st.refunding.kills.Load())
	out.Redriven, out.Later = int(st.redriven.Load()), st.laterOutcome(s)
	out.LostDelete = int(st.lost.Load())
	out.Faults = st.faults.counts()
	out.Calls.DynamoDB, out.Calls.Stripe = s.Proxy.Total(), stripeCalls(s)
	out.Count.Extra = out.Deliveries - s.Counts().Sent
	return out, err
}

// phases runs the storm with faults. After it, every order for which Stripe has an
// outcome must be settled before any redrive. Then it redrives the dead letters after 25
// hours and after 5, 13 and 20 days (a queue keeps a dead letter for 14), and sends the
// last orders on the last day. Then it redrives without faults, while Stripe still
// replays stored responses: an order that can only be settled after its key has expired
// is stuck. The last redrive comes when a small refund is too old to be repeated.
func (st *storm) phases(ctx context.Context, s *system.System, next string) error {
	last := st.Workload.lastDay()
	post := func() error { return st.post(ctx, s, 0, last, next) }
	if err := st.withFaults(ctx, s, "storm", post); err != nil {
		return err
	}
	if err := errors.Join(awaitLeases(ctx), st.lookAll(ctx, s, "reconcile before any redrive")); err != nil {
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
		err := st.withFaults(ctx, s, later.name, func() error { return st.redrive(ctx, s, later.wait) })
		if err != nil {
			return err
		}
	}
	post = func() error { return st.post(ctx, s, last, st.Workload.Orders, next) }
	if err := st.withFaults(ctx, s, "the last day", post); err != nil {
		return err
	}
	for _, wait := range []time.Duration{0, 0, refundAge} {
		st.setPhase("without faults")
		if err := awaitLeases(ctx); err != nil {
			return err
		}
		if err := st.redrive(ctx, s, wait); err != nil {
			return err
		}
	}
	return st.end(ctx, s)
}

// refundAge is the age at which a small refund is not sent any more. Stripe's keys live
// for four hours more.
const refundAge = 20 * time.Hour

// awaitLeases waits until the leases of killed workers have expired. The function uses
// this machine's clock, which Advance does not move: without the wait, a redrive would
// use up its five receives while one lease runs.
func awaitLeases(ctx context.Context) error {
	expired := time.NewTicker(functionTimeout + time.Second)
	defer expired.Stop()
	select {
	case <-expired.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withFaults runs one phase with faults and kills.
func (st *storm) withFaults(ctx context.Context, s *system.System, name string, phase func() error) error {
	st.setPhase(name)
	if st.NoFaults {
		return phase()
	}
	faulty, stop := context.WithCancel(ctx)
	var injecting sync.WaitGroup
	injecting.Go(func() { st.faults.rotate(faulty, s) })
	injecting.Go(func() { st.kill(faulty, s) })
	injecting.Go(func() { st.disturb(faulty, s) })
	err := phase()
	stop()
	injecting.Wait()
	return err
}

func (st *storm) setPhase(phase string) { st.phase.Store(&phase) }

// post sends some orders of the workload in waves, deploys the next version in the middle
// of the workload, and waits until the queue is empty.
func (st *storm) post(ctx context.Context, s *system.System, from, to int, next string) error {
	wave := max(1, min(largestWave, st.Workload.Orders/4))
	var later []sqstest.Draft // refunds of the orders of the wave before
	var entered []int         // its orders by HTTP, which are put again
	for ; from < to || len(later) > 0; from += wave {
		drafts, puts := later, entered
		later, entered = nil, nil
		for n := from; n < min(from+wave, to); n++ {
			early, late := st.refundDrafts(n)
			later = append(later, late...)
			if !st.FIFO {
				drafts = append(drafts, early...)
			}
			if st.Workload.byHTTP(n) {
				entered = append(entered, n)
			} else {
				for _, m := range st.Workload.messages(n) {
					drafts = append(drafts, st.draft(n, m.name(), m.body))
				}
			}
			if st.FIFO { // a refund before its order would block the order's group
				drafts = append(drafts, early...)
			}
		}
		if from <= st.Workload.Orders/2 && st.Workload.Orders/2 < from+wave {
			if err := s.Function.Replace(next); err != nil {
				return err
			}
		}
		if _, err := s.Post(drafts); err != nil {
			return err
		}
		st.posted.Add(int64(len(drafts) + len(entered)))
		st.parts.put.Add(int64(len(entered)))
		if err := st.enter(ctx, s, slices.Concat(entered, puts)); err != nil {
			return err
		}
		if err := st.drain(ctx, s, depth); err != nil {
			return err
		}
	}
	return st.drain(ctx, s, 0)
}

// refundDrafts returns the messages for refunds of an order: those that are sent with it,
// and those that are sent a wave later.
func (st *storm) refundDrafts(n int) (early, late []sqstest.Draft) {
	for _, m := range st.Workload.refunds(n) {
		if d := st.draft(n, m.name(), m.body()); m.early {
			early = append(early, d)
		} else {
			late = append(late, d)
		}
	}
	return early, late
}

func (st *storm) draft(n int, name, body string) sqstest.Draft {
	d := sqstest.Draft{Body: body, Attributes: map[string]sqstest.Attribute{AttrName: sqstest.Text(name)}}
	if st.FIFO {
		d.Group, d.DeduplicationID = orderID(n), name
	}
	return d
}

// redrive advances the clocks and redrives the dead letters.
func (st *storm) redrive(ctx context.Context, s *system.System, wait time.Duration) error {
	if err := st.settleParts(ctx, s); err != nil {
		return err
	}
	if err := st.passLeases(ctx, s); err != nil {
		return err
	}
	s.Advance(wait)
	now := s.Stripe.Now()
	s.Stripe.Machine(func(m *stripetest.Machine) { m.PruneKeys(now) })
	moved, err := s.Redrive()
	st.redriven.Add(int64(moved))
	return errors.Join(err, st.drain(ctx, s, 0))
}

// The storm fails after stallTimeout without a delivery. After idleAfter without work it
// advances the clocks.
const (
	stallTimeout = time.Minute
	idleAfter    = 100 * time.Millisecond
	pollInterval = 20 * time.Millisecond
)

// drain waits until at most so many messages are in the order queue. While the system is
// idle, it advances the clocks.
func (st *storm) drain(ctx context.Context, s *system.System, waiting int) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for w := (idleWatch{delivered: -1}); s.Waiting() > waiting || waiting == 0 && s.Busy(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		idle, stalled := w.poll(s.Busy(), st.deliveries.Load())
		if stalled {
			return fmt.Errorf("%s: stalled: %d messages waiting, no delivery for %v", *st.phase.Load(),
				s.Waiting(), stallTimeout)
		}
		if idle {
			s.Skip()
		}
	}
	return nil
}

// idleWatch detects that a system is idle or stalled.
type idleWatch struct {
	quiet, silent time.Duration // time without work, and without a delivery
	delivered     int64
}

// poll is called once per pollInterval. It reports whether the system only waits for a
// clock, and whether it is stalled.
func (v *idleWatch) poll(busy bool, delivered int64) (idle, stalled bool) {
	v.quiet, v.silent = v.quiet+pollInterval, v.silent+pollInterval
	if busy {
		v.quiet = 0
	}
	if delivered != v.delivered {
		v.delivered, v.silent = delivered, 0
	}
	if idle = v.quiet >= idleAfter; idle {
		v.quiet = 0
	}
	return idle, v.silent >= stallTimeout
}

// kill kills busy instances one by one, in proportion to the finished messages, so that a
// slow handler is not killed more often.
func (st *storm) kill(ctx context.Context, s *system.System) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if st.killDue(int(st.posted.Load()+st.redriven.Load()) - s.Waiting()) {
			st.kills.Add(int64(s.Kill(st.counted(one()))))
		}
		st.killPart(s)
	}
}

// killDue reports whether the next kill is due after so many finished messages.
func (st *storm) killDue(done int) bool {
	return int(st.kills.Load()) < st.Kills*done/max(st.total, 1)
}

// one returns a function that matches the first instance only.
func one() func([]byte) bool {
	matched := false
	return func([]byte) bool {
		first := !matched
		matched = true
		return first
	}
}

// watch writes how far the storm is.
func (st *storm) watch(ctx context.Context, s *system.System) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		waiting := s.Waiting()
		fmt.Fprintf(st.Progress, "%s: %d of %d messages done; %s: %d deliveries, %d kills, %d faults, %d waiting\n",
			st.handler.Name, max(0, int(st.posted.Load())-waiting), st.total, *st.phase.Load(), st.deliveries.Load(),
			st.kills.Load(), Sum(st.faults.counts()), waiting)
	}
}

// Sum returns the number of all faults of an outcome.
func Sum(faults map[string]int) (n int) {
	for _, some := range faults {
		n += some
	}
	return n
}

func stripeCalls(s *system.System) (n int) {
	for _, e := range []stripetest.Endpoint{
		stripetest.Create, stripetest.Confirm, stripetest.Read, stripetest.List, stripetest.Cancel,
		stripetest.CreateRefund, stripetest.ListRefunds, stripetest.ReadRefund,
	} {
		n += s.Stripe.Count(e)
	}
	return n
}

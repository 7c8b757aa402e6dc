package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/faults"
	"orderonce/scripts/local/system"
)

// Options configure a storm. There are no defaults.
type Options struct {
	Workload  Workload
	Instances int
	FIFO      bool
	Dir       string // for binaries and the log
	Engine    dynamodbtest.Location
	Progress  io.Writer // gets a line every ten seconds, unless nil
}

// Outcome is the result of a storm.
type Outcome struct {
	Handler Handler
	Figures Figures
	Checks  []invariants.Result // of the product; nil for another handler
	Took    time.Duration
}

// Broken returns the ids of the invariants that were broken.
func (o Outcome) Broken() (ids []string) {
	for _, c := range o.Checks {
		if len(c.Broken) > 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Settings that every handler shares. AWS recommends at least five receives.
const (
	maxReceives     = 5
	functionTimeout = 2 * time.Second
	visibility      = 3 * time.Second
	largestWave     = 500  // orders sent at once
	depth           = 2000 // messages in the queue above which the next wave waits
	ordersPerKill   = 20
	// profileDuration is how long the same things go wrong, and longDelay how late a call
	// may arrive: its sender has timed out then, and another worker may have claimed the
	// order.
	profileDuration = 600 * time.Millisecond
	longDelay       = functionTimeout + visibility - time.Second
	// instanceMemory limits each process: a frozen one returns no memory to the system.
	instanceMemory = "18MiB"
)

type storm struct {
	Options

	handler  Handler
	programs system.Options // of the functions beside that of the order queue
	tool     string         // a program; "" if the handler has none
	next     string         // path of the version that is deployed in the middle of the storm
	system   atomic.Pointer[system.System]
	tally    *tally
	faults   *faults.Injector
	log      *functionLog

	phase  atomic.Pointer[string]
	posted atomic.Int64 // messages
	total  int          // messages of the workload
	acting atomic.Int64 // cancels by operators and requests for refunds that are under way
	turn   int          // which of the other functions is killed next
	left   []string     // orders that still waited although Stripe had their outcome
}

// Storm runs a storm with one handler. An error means that the storm could not run or did
// not end; errors of the handler are in the outcome.
func Storm(ctx context.Context, o Options, h Handler) (Outcome, error) {
	o.Workload.Later, o.FIFO = h.Program != nil, o.FIFO || h.FIFO
	counts := &tally{figures: Figures{}}
	st := &storm{Options: o, handler: h, tally: counts}
	st.faults = faults.New(o.Workload.Seed, longDelay, func(profile string) {
		counts.add(Figure(profile), 1)
		counts.add(Failed, 1)
	})
	for n := range o.Workload.Orders {
		st.total += len(o.Workload.messages(n)) + len(o.Workload.refunds(n))
	}
	dir := filepath.Join(o.Dir, h.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return Outcome{}, err
	}
	binary, err := st.build(ctx, dir)
	if err != nil {
		return Outcome{}, err
	}
	if st.log, err = newFunctionLog(filepath.Join(dir, logName), counts); err != nil {
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
	out := Outcome{Handler: h}
	err = st.execute(ctx, s, &out)
	out.Took = time.Since(began)
	return out, errors.Join(err, s.Close(), st.log.Close())
}

// build builds the programs of the handler. Its next version has the same code.
func (st *storm) build(ctx context.Context, dir string) (binary string, err error) {
	if binary, err = st.handler.Build(ctx, dir); err == nil {
		binary, err = filepath.Abs(binary)
	}
	st.next = filepath.Join(dir, "next")
	err = errors.Join(err, os.RemoveAll(st.next), os.Symlink(binary, st.next))
	if err != nil || st.handler.Program == nil {
		return binary, err
	}
	o := &st.programs
	for name, path := range map[string]*string{
		"webhook": &o.Webhook, "reconcile": &o.Reconcile, "publish": &o.Publish, "receipt": &o.Receipt,
		"intake": &o.Intake, "refund": &o.Refund,
	} {
		if *path, err = st.handler.Program(ctx, "functions/"+name); err != nil {
			return "", err
		}
	}
	st.tool, err = st.handler.Program(ctx, "scripts/orders")
	return binary, err
}

func (st *storm) options(ctx context.Context, binary string) system.Options {
	o := st.programs
	o.Binary, o.Engine, o.Instances, o.FIFO = binary, st.Engine, st.Instances, st.FIFO
	o.MaxReceives, o.FunctionTimeout, o.Visibility = maxReceives, functionTimeout, visibility
	o.Output, o.Observe, o.Duplicate = st.log, st.observe, st.duplicate
	o.LoseDelete = func(sqstest.Message) bool { return st.faults.Happens(0.01) }
	o.BeforeStripe = func(c stripetest.Call) { st.beforeCall(ctx, c) }
	o.AfterStripe = func(c stripetest.Call) { st.afterCall(ctx, c) }
	if st.Workload.Later {
		st.addParts(&o)
	}
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

func (st *storm) duplicate(sqstest.Message) sqstest.Twice { return st.faults.Duplicate(duplicates) }

// untilExit is UntilExit of every function.
func untilExit(ctx context.Context, s *system.System) (context.Context, context.CancelFunc) {
	cancel := func() {}
	for _, host := range []*lambdatest.Host{
		s.Function, s.Refund, s.Webhook, s.Reconcile, s.Intake, s.Publish, s.Receipt,
	} {
		if host != nil {
			before, next := cancel, context.CancelFunc(nil)
			ctx, next = host.UntilExit(ctx)
			cancel = func() { next(); before() }
		}
	}
	return ctx, cancel
}

func (st *storm) observe(b sqstest.Batch) {
	for _, m := range b.Messages {
		if isReceipt(m) {
			return
		}
		st.tally.add(Deliveries, 1)
		if isRefund(m) {
			st.tally.add(RefundDeliveries, 1)
		}
	}
	st.tally.add(LostDeletes, len(b.Lost))
}

// execute runs the storm from the first message to the audit.
func (st *storm) execute(ctx context.Context, s *system.System, out *Outcome) error {
	if st.handler.Prepare != nil {
		if err := st.handler.Prepare(ctx, s); err != nil {
			return err
		}
	}
	s.Proxy.Before(func(c dynamodbtest.Call) { st.faults.BeforeDynamoDB(s, c) })
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	if st.Progress != nil {
		watch.Go(func() { st.watch(watching, s) })
	}
	err := st.phases(ctx, s)
	if err == nil {
		st.setPhase("audit")
		if err = s.Function.Close(); s.Refund != nil { // nothing may change during the audit
			err = errors.Join(err, s.Refund.Close())
		}
	}
	if err == nil {
		err = st.audit(ctx, s, out)
	}
	stop()
	watch.Wait()
	return err
}

// phases runs the storm with faults. After it, every order for which Stripe has an
// outcome must be settled before any redrive. Then it redrives the dead letters after 25
// hours and after 5, 13 and 20 days (a queue keeps a dead letter for 14), and sends the
// last orders on the last day. Then it redrives without faults, while Stripe still
// replays stored responses: an order that can only be settled after its key has expired
// is stuck. The last redrive comes when a small refund is too old to be repeated.
func (st *storm) phases(ctx context.Context, s *system.System) error {
	last := st.Workload.lastDay()
	post := func() error { return st.post(ctx, s, 0, last) }
	if err := st.withFaults(ctx, s, "storm", post); err != nil {
		return err
	}
	if err := errors.Join(awaitLeases(ctx), st.recheckAll(ctx, s, "reconcile before any redrive")); err != nil {
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
	post = func() error { return st.post(ctx, s, last, st.Workload.Orders) }
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
	waited := false
	return system.Until(ctx, functionTimeout+time.Second, func() (bool, error) {
		over := waited
		waited = true
		return over, nil
	})
}

func (st *storm) withFaults(ctx context.Context, s *system.System, name string, phase func() error) error {
	st.setPhase(name)
	faulty, stop := context.WithCancel(ctx)
	var injecting sync.WaitGroup
	injecting.Go(func() {
		every(faulty, profileDuration, func() { st.faults.Change(s) })
		st.faults.End(s)
	})
	injecting.Go(func() { every(faulty, 5*time.Millisecond, func() { st.kill(s) }) })
	if st.Workload.Later {
		injecting.Go(func() { every(faulty, recheckEvery, func() { st.disturb(faulty, s) }) })
	}
	err := phase()
	stop()
	injecting.Wait()
	return err
}

func (st *storm) setPhase(phase string) { st.phase.Store(&phase) }

// post sends some orders of the workload in waves, deploys the next version in the middle
// of the workload, and waits until the queue is empty.
func (st *storm) post(ctx context.Context, s *system.System, from, to int) error {
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
			if err := s.Function.Replace(st.next); err != nil {
				return err
			}
		}
		if _, err := s.Post(drafts); err != nil {
			return err
		}
		st.posted.Add(int64(len(drafts) + len(entered)))
		st.tally.add(Put, len(entered))
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
	if st.handler.FIFO { // ContentBasedDeduplication
		hash := sha256.Sum256([]byte(body))
		d.DeduplicationID = hex.EncodeToString(hash[:])
	}
	return d
}

func (st *storm) redrive(ctx context.Context, s *system.System, wait time.Duration) error {
	if err := errors.Join(st.settleParts(ctx, s), st.passLeases(ctx, s)); err != nil {
		return err
	}
	s.Advance(wait)
	now := s.Stripe.Now()
	s.Stripe.Machine(func(m *stripetest.Machine) { m.PruneKeys(now) })
	moved, err := s.Redrive()
	st.tally.add(Redriven, moved)
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
	w := idleWatch{delivered: -1}
	return system.Until(ctx, pollInterval, func() (bool, error) {
		if s.Waiting() <= waiting && (waiting > 0 || !s.Busy()) {
			return true, nil
		}
		idle, stalled := w.poll(s.Busy(), st.tally.get(Deliveries))
		if stalled {
			return false, fmt.Errorf("%s: stalled: %d messages waiting, no delivery for %v", *st.phase.Load(),
				s.Waiting(), stallTimeout)
		}
		if idle {
			s.Skip()
		}
		return false, nil
	})
}

// idleWatch detects that a system is idle or stalled.
type idleWatch struct {
	quiet, silent time.Duration // time without work, and without a delivery
	delivered     int
}

// poll is called once per pollInterval. It reports whether the system only waits for a
// clock, and whether it is stalled.
func (v *idleWatch) poll(busy bool, delivered int) (idle, stalled bool) {
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

func (st *storm) watch(ctx context.Context, s *system.System) {
	every(ctx, 10*time.Second, func() {
		waiting, n := s.Waiting(), st.tally.all()
		fmt.Fprintf(st.Progress, "%s: %d of %d messages done; %s: %d deliveries, %d kills, %d faults, %d waiting\n",
			st.handler.Name, max(0, int(st.posted.Load())-waiting), st.total, *st.phase.Load(), n[Deliveries],
			n[Kills], n[Failed], waiting)
	})
}

// every calls f at once and then again and again, until the context ends.
func every(ctx context.Context, d time.Duration, f func()) {
	_ = system.Until(ctx, d, func() (bool, error) { f(); return false, nil }) // the end of the context
}

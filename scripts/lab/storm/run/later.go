package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// Later is what webhooks and the function of the schedule did.
type Later struct {
	Webhooks int // requests
	Runs     int // of the function of the schedule
	Settled  int // orders that these two settled
	Deleted  int // messages that were deleted after the charge
	Kills    int // of processes of every function but that of the order queue
}

// later counts what is in Later during a storm. left are the orders that still waited
// before the first redrive, or at the end, although Stripe had their outcome.
type later struct {
	runs, deleted, runsKilled atomic.Int64
	left                      []string
}

const (
	// lookEvery is the time between two runs of the function of the schedule under faults.
	lookEvery = 3 * time.Second
	// killsPerPart is how many kills of the order function there are for each of another
	// function.
	killsPerPart = 4
)

// build builds the handler's programs.
func (st *storm) build(ctx context.Context, dir string) (binary, next string, err error) {
	if binary, next, err = st.handler.Build(ctx, dir); err != nil || st.handler.Program == nil {
		return binary, next, err
	}
	o := &st.programs
	for name, path := range map[string]*string{
		"webhook": &o.Webhook, "reconcile": &o.Reconcile, "publish": &o.Publish, "receipt": &o.Receipt,
		"intake": &o.Intake, "refund": &o.Refund,
	} {
		if *path, err = st.handler.Program(ctx, "functions/"+name); err != nil {
			return "", "", err
		}
	}
	st.tool, err = st.handler.Program(ctx, "scripts/orders")
	return binary, next, err
}

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

// laterOptions adds to the options what settles orders without their messages, and what
// makes that necessary: lost messages and webhooks.
func (st *storm) laterOptions(ctx context.Context, o *system.Options) {
	if !st.Workload.Later {
		return
	}
	st.partsOptions(o)
	o.Deliveries = st.Workload.deliveries
	fail := o.BeforeStripe
	o.BeforeStripe = func(c stripetest.Call) { st.beforeCall(ctx, c); fail(c) }
	o.AfterStripe = func(c stripetest.Call) { st.afterCall(ctx, c) }
}

// loseMessage deletes the message of an order that loses it, and kills its worker, once
// Stripe has an outcome: nothing comes back for the order then.
func (st *storm) loseMessage(c stripetest.Call) {
	n := st.Workload.numberOf(c.OrderID)
	if c.Endpoint != stripetest.Confirm || n < 0 || st.NoFaults || !st.Workload.loses(n) {
		return
	}
	s, confirmed := st.system.Load(), false
	s.Stripe.Machine(func(m *stripetest.Machine) {
		i := m.Intent(c.Intent)
		confirmed = i != nil && i.Status != stripetest.StatusRequiresConfirmation
	})
	if !confirmed {
		return
	}
	name := st.Workload.messages(n)[0].name()
	deleted := s.Purge(func(m sqstest.Message) bool { return m.Attributes[AttrName].Text == name })
	if deleted > 0 {
		st.later.deleted.Add(int64(deleted))
		id := []byte(orderID(n))
		holds := func(payload []byte) bool { return bytes.Contains(payload, id) }
		st.kills.Add(int64(s.Kill(st.counted(holds))))
	}
}

// act lets customers authenticate and banks answer, for every order that waits for them
// and whose fate it is. An intent that a request holds is left for the next time.
func (st *storm) act(s *system.System) (err error) {
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, i := range m.Intents() {
			if did := st.actOn(m, s.Stripe.Now(), i); did != nil && !errors.Is(did, stripetest.ErrLocked) {
				err = errors.Join(err, did)
			}
		}
	})
	return err
}

func (st *storm) actOn(m *stripetest.Machine, now time.Time, i *stripetest.Intent) error {
	n := st.Workload.numberOf(i.OrderID())
	if n < 0 {
		return nil
	}
	ends := st.Workload.fate(n).ends
	switch {
	case i.Status == stripetest.StatusCanceled:
	case i.Status == stripetest.StatusProcessing && ends != "":
		return m.Settle(now, i.ID, ends == order.Paid)
	case i.LastError != nil && i.LastError.Code == "authentication_required" && ends == order.Paid:
		return m.CustomerPays(now, i.ID)
	}
	return nil
}

// disturb runs the function of the schedule every lookEvery and lets people act, under
// faults, until the context ends. It kills the function in the middle then.
func (st *storm) disturb(ctx context.Context, s *system.System) {
	if !st.Workload.Later {
		return
	}
	next := time.NewTicker(lookEvery)
	defer next.Stop()
	for {
		st.lookUntil(ctx, s)
		_ = st.act(s) // end reports its errors
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// lookUntil invokes the function of the schedule and kills it when the context ends.
func (st *storm) lookUntil(ctx context.Context, s *system.System) {
	var looking sync.WaitGroup
	defer looking.Wait()
	looked := make(chan struct{})
	looking.Go(func() {
		defer close(looked)
		st.later.runs.Add(1)
		_ = s.Look(ctx) // it fails under faults
	})
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-looked:
			return
		case <-tick.C:
			if ctx.Err() != nil {
				st.later.runsKilled.Add(int64(s.Reconcile.Kill(nil)))
			}
		}
	}
}

// looks is how often lookAll tries: a call that a service received before the faults
// ended may be executed up to longDelay later, and the lease of a killed worker may be
// running.
const looks = 3

// lookAll lets the function of the schedule look at every waiting order, without faults,
// and notes the orders that still wait although Stripe has their outcome.
func (st *storm) lookAll(ctx context.Context, s *system.System, phase string) error {
	if !st.Workload.Later {
		return nil
	}
	st.setPhase(phase)
	var left []string
	for range looks {
		if err := st.passLeases(ctx, s); err != nil {
			return err
		}
		st.later.runs.Add(1)
		if err := s.LookAll(ctx); err != nil {
			return err
		}
		var err error
		if left, err = leftWaiting(ctx, s); err != nil || len(left) == 0 {
			return err
		}
		if err := awaitLeases(ctx); err != nil {
			return err
		}
	}
	for _, order := range left {
		st.later.left = append(st.later.left, phase+": "+order)
	}
	return nil
}

// leftWaiting returns the orders and the refunds that wait although Stripe has their
// outcome.
func leftWaiting(ctx context.Context, s *system.System) ([]string, error) {
	waiting := invariants.Books{
		Orders: map[order.ID]invariants.Order{}, Intents: map[order.IntentID]invariants.Intent{},
	}
	open := map[refundKey]bool{}
	for o, err := range s.Orders(ctx) {
		if err != nil {
			return nil, err
		}
		if _, waits := o.Status.RecheckAfter(); waits {
			waiting.Orders[o.OrderID] = o
		}
		for _, i := range o.Refunds {
			if i.Status == refund.Open {
				open[refundKey{string(o.OrderID), i.ID}] = true
			}
		}
	}
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, r := range waiting.Orders {
			if i := m.Intent(string(r.Intent)); i != nil {
				waiting.Intents[r.Intent] = system.IntentOf(i)
			}
		}
	})
	return append(waiting.LeftWaiting(), leftOpen(s, open)...), nil
}

// end lets everybody act for the last time and settles what is left.
func (st *storm) end(ctx context.Context, s *system.System) error {
	if !st.Workload.Later {
		return nil
	}
	if err := st.act(s); err != nil {
		return fmt.Errorf("act at the end: %w", err)
	}
	if err := s.Heard(ctx); err != nil {
		return err
	}
	looked := st.lookAll(ctx, s, "reconcile at the end")
	if err := errors.Join(looked, s.Webhook.Close(), s.Reconcile.Close()); err != nil {
		return err
	}
	return st.settleParts(ctx, s)
}

func (st *storm) laterOutcome(s *system.System) Later {
	if !st.Workload.Later {
		return Later{}
	}
	return Later{
		Webhooks: len(s.Events.Sent()), Runs: int(st.later.runs.Load()), Settled: st.log.settled(),
		Deleted: int(st.later.deleted.Load()),
		Kills:   int(st.parts.kills.Load() + st.later.runsKilled.Load()),
	}
}

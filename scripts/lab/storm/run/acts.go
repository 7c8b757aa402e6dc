package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

const (
	// recheckEvery is the time between two runs of the function of the schedule, under
	// faults.
	recheckEvery = 3 * time.Second
	// killsPerPart is how many kills of the order function there are for each of another
	// function.
	killsPerPart = 4
	clients      = 4
	// madeShare is the share of the made refunds whose worker is killed before it can record
	// them.
	madeShare = 0.1
	// rechecks is how often recheckAll tries: a call that a service received before the
	// faults ended may be executed up to longDelay later, and the lease of a killed worker
	// may be running.
	rechecks = 3
)

// addParts adds what settles orders without their messages and what follows from a
// charge, with lost webhooks and the faults of the bus and of SES.
func (st *storm) addParts(o *system.Options) {
	o.Stock, o.Deliveries = st.Workload.stock(), st.Workload.deliveries
	o.RefuseEvent = func(eventbridgetest.Event) string {
		if st.faults.Happens(0.05) {
			return eventbridgetest.CodeThrottling
		}
		return ""
	}
	o.LoseMailEvent = func(json.RawMessage) bool { return st.faults.Happens(0.2) }
	o.BeforeMail = func(number int) {
		faults := []sestest.Fault{
			{Kind: sestest.Refuse, Status: http.StatusTooManyRequests, Code: "TooManyRequestsException"},
			{Kind: sestest.LoseBefore},
			{Kind: sestest.LoseAfter},
			{Kind: sestest.Garble},
		}
		if s := st.system.Load(); s != nil && st.faults.Happens(0.1) {
			s.Mail.Fail(faults[number%len(faults)])
		}
	}
}

// isRefund reports whether a message is for a refund, and isReceipt whether it is one of
// the receipt queue, an event.
func isRefund(m sqstest.Message) bool {
	return strings.Contains(m.Attributes[AttrName].Text, refundNames)
}

func isReceipt(m sqstest.Message) bool { return strings.Contains(m.Body, `"detail-type"`) }

func (st *storm) beforeCall(ctx context.Context, c stripetest.Call) {
	if c.Endpoint == stripetest.CreateRefund {
		st.acting.Add(1)
	}
	st.cancelAt(ctx, c, true)
	if s := st.system.Load(); s != nil {
		st.faults.BeforeStripe(s, c)
	}
}

func (st *storm) afterCall(ctx context.Context, c stripetest.Call) {
	if c.Endpoint == stripetest.CreateRefund {
		st.acting.Add(-1)
		st.killRefund(c)
	}
	st.cancelAt(ctx, c, false)
	st.loseMessage(c)
}

// kill kills a busy instance, in proportion to the finished messages, so that a slow
// handler is not killed more often, and a busy process of another function in turn.
func (st *storm) kill(s *system.System) {
	done := int(st.posted.Load()) + st.tally.get(Redriven) - s.Waiting()
	if st.tally.get(Kills) < st.Workload.Orders/ordersPerKill*done/max(st.total, 1) {
		st.killOne(s, func([]byte) bool { return true })
	}
	if st.handler.Kill != nil && st.tally.get(OtherKills) < st.tally.get(Kills) {
		st.tally.add(OtherKills, st.handler.Kill())
	}
	if st.Workload.Later && st.tally.get(OtherKills) < st.tally.get(Kills)/killsPerPart {
		st.turn++
		hosts := []*lambdatest.Host{s.Webhook, s.Intake, s.Publish, s.Receipt}
		st.tally.add(OtherKills, hosts[st.turn%len(hosts)].Kill(one(func([]byte) bool { return true })))
	}
}

func (st *storm) killOne(s *system.System, match func([]byte) bool) {
	killed := s.Kill(one(func(payload []byte) bool {
		matches := match(payload)
		if matches && holdsRefund(payload) {
			st.tally.add(RefundKills, 1)
		}
		return matches
	}))
	st.tally.add(Kills, killed)
}

// one returns a function that matches only the first that matches.
func one(match func([]byte) bool) func([]byte) bool {
	matched := false
	return func(payload []byte) bool {
		first := !matched && match(payload)
		matched = matched || first
		return first
	}
}

func holdsRefund(payload []byte) bool { return bytes.Contains(payload, []byte(refundNames)) }

// killRefund kills the worker of a refund that Stripe has just made.
func (st *storm) killRefund(c stripetest.Call) {
	dice := st.Workload.dice(madeDice, c.Number)
	if c.Status == http.StatusOK && !c.Replayed && dice.Float64() < madeShare {
		id := []byte(c.OrderID)
		st.killOne(st.system.Load(), func(payload []byte) bool {
			return holdsRefund(payload) && bytes.Contains(payload, id)
		})
	}
}

// cancelAt cancels the order of a call, as the command orders cancel does, if its moment
// has come. The operator does not wait for the function, nor the function for the
// operator. A cancel that fails is tried again at the order's next call of this kind.
func (st *storm) cancelAt(ctx context.Context, c stripetest.Call, before bool) {
	n := st.Workload.numberOf(c.OrderID)
	if n < 0 || st.Workload.cancels(n) != (moment{c.Endpoint, before}) {
		return
	}
	s := st.system.Load()
	canceling := order.Cancellation{
		Store: s.Store, Payments: s.Payments, Canceler: s.Payments, Scope: system.Scope,
	}
	st.acting.Add(1)
	go func() {
		defer st.acting.Add(-1)
		_, _ = canceling.Cancel(ctx, order.ID(c.OrderID), time.Now()) // the audit looks at what came of it
	}()
}

// loseMessage deletes the message of an order that loses it, and kills its worker, once
// Stripe has an outcome: nothing comes back for the order then.
func (st *storm) loseMessage(c stripetest.Call) {
	n := st.Workload.numberOf(c.OrderID)
	if c.Endpoint != stripetest.Confirm || n < 0 || !st.Workload.Later || !st.Workload.loses(n) {
		return
	}
	s, confirmed := st.system.Load(), false
	s.Stripe.Machine(func(m *stripetest.Machine) {
		i := m.Intent(c.Intent)
		confirmed = i != nil && i.Status != stripetest.StatusRequiresConfirmation
	})
	name := st.Workload.messages(n)[0].name()
	named := func(m sqstest.Message) bool { return m.Attributes[AttrName].Text == name }
	if !confirmed || s.Purge(named) == 0 {
		return
	}
	st.tally.add(Deleted, 1)
	id := []byte(orderID(n))
	st.killOne(s, func(payload []byte) bool { return bytes.Contains(payload, id) })
}

func (st *storm) enter(ctx context.Context, s *system.System, orders []int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for _, n := range orders {
		group.Go(func() error {
			return system.Until(ctx, pollInterval, func() (bool, error) { return st.put(ctx, s, n) })
		})
	}
	return group.Wait()
}

// put puts an order by HTTP. It reports whether the answer is not "try again".
func (st *storm) put(ctx context.Context, s *system.System, n int) (answered bool, err error) {
	st.tally.add(Requests, 1)
	a, err := s.PutOrder(ctx, orderID(n), st.Workload.messages(n)[0].body)
	again := a.Status >= http.StatusInternalServerError || a.Status == http.StatusTooManyRequests
	if err == nil && !again && a.Status >= http.StatusBadRequest {
		err = fmt.Errorf("PUT /orders/%s: %d: %s", orderID(n), a.Status, a.Body)
	}
	return !again, err
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

// disturb runs the function of the schedule under faults and lets people act. When the
// context ends meanwhile, it kills the function.
func (st *storm) disturb(ctx context.Context, s *system.System) {
	var looking sync.WaitGroup
	rechecked := make(chan struct{})
	looking.Go(func() {
		defer close(rechecked)
		st.tally.add(Runs, 1)
		_ = s.Look(ctx) // it fails under faults
	})
	_ = system.Until(context.WithoutCancel(ctx), pollInterval, func() (over bool, _ error) {
		select {
		case <-rechecked:
			return true, nil
		default:
		}
		if ctx.Err() != nil {
			st.tally.add(OtherKills, s.Reconcile.Kill(nil))
		}
		return false, nil
	})
	looking.Wait()
	_ = st.act(s) // end reports its errors
}

// passLeases lets the time of every refund's lease pass, without waiting for it. A killed
// worker and a lost response leave a lease of fifteen minutes, and the function uses this
// machine's clock.
//
// It waits until nothing runs. A request that a killed worker sent may still be at
// Stripe, which executes it up to longDelay later. In production that is long before the
// lease ends; here the request would arrive after another attempt and after days, and
// give the money back twice.
func (st *storm) passLeases(ctx context.Context, s *system.System) error {
	quiet := -pollInterval
	err := system.Until(ctx, pollInterval, func() (bool, error) {
		quiet += pollInterval
		if s.Busy() || st.acting.Load() > 0 {
			quiet = 0
		}
		return quiet >= idleAfter, nil
	})
	if err != nil {
		return err
	}
	return s.PassRefundLeases(ctx)
}

// recheckAll lets the function of the schedule recheck every waiting order, without
// faults, and notes the orders that still wait although Stripe has their outcome.
func (st *storm) recheckAll(ctx context.Context, s *system.System, phase string) error {
	if !st.Workload.Later {
		return nil
	}
	st.setPhase(phase)
	var left []string
	for range rechecks {
		if err := st.passLeases(ctx, s); err != nil {
			return err
		}
		st.tally.add(Runs, 1)
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
		st.left = append(st.left, phase+": "+order)
	}
	return nil
}

func leftWaiting(ctx context.Context, s *system.System) (left []string, err error) {
	waiting := invariants.Books{
		Orders: map[order.ID]invariants.Order{}, Intents: map[order.IntentID]invariants.Intent{},
	}
	for o, err := range s.Orders(ctx) {
		if err != nil {
			return nil, err
		}
		waiting.Orders[o.OrderID] = o
	}
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, i := range m.Intents() {
			waiting.Intents[order.IntentID(i.ID)] = system.IntentOf(i)
		}
		for _, r := range m.Refunds() {
			o := waiting.Orders[order.ID(r.Metadata["orderId"])]
			if i, known := o.Refund(refund.ID(r.Metadata["refundId"])); known && i.Status == refund.Open {
				left = append(left,
					fmt.Sprintf("left waiting: refund %s of order %s is open, Stripe has %s", i.ID, o.OrderID, r.ID))
			}
		}
	})
	return slices.Concat(waiting.LeftWaiting(), left), nil
}

// settleParts waits until every event is published and every receipt has ended. It moves
// dead letters of the receipts back until there are none: after two weeks SQS would
// delete them.
func (st *storm) settleParts(ctx context.Context, s *system.System) error {
	if !st.Workload.Later {
		return nil
	}
	if err := s.Published(ctx); err != nil {
		return err
	}
	return system.Until(ctx, idleAfter, func() (over bool, err error) {
		waits := false
		s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
			counts, failed := m.Counts(now, system.ReceiptQueue)
			moved := 0
			if err = failed; err == nil && counts.Empty() {
				moved, err = m.Redrive(now, system.ReceiptDeadLetters, system.ReceiptQueue)
			}
			over, waits = counts.Empty() && moved == 0, counts.Visible == 0 && !counts.Empty()
		})
		if waits {
			s.Advance(time.Second) // also while a receipt is sent: then it is delivered twice
		}
		return over, err
	})
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
	rechecked := st.recheckAll(ctx, s, "reconcile at the end")
	if err := errors.Join(rechecked, s.Webhook.Close(), s.Reconcile.Close()); err != nil {
		return err
	}
	return st.settleParts(ctx, s)
}

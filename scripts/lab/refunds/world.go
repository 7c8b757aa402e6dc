// Package refunds has the scenarios in which a refund might be made twice, lost or called
// wrongly. It runs the real refund.Processor, refund.Refresher and order.Cancellation
// over the stores and the bank of refundtest, which their contract suites test.
//
// Read case.go (what a world starts with), deviation.go (what may happen in it),
// oracle.go (what must hold), world.go (how it runs), port.go (the calls of the product)
// and search.go (every schedule of two faults, many random worlds, and the shortest
// history of a broken one).
package refunds

import (
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/scripts/lab/stage"
)

// World runs the product in one case.
type World struct {
	*stage.Stage
	Case

	orders  *ordertest.Memory
	store   *refundtest.Memory
	intents *ordertest.Bank
	bank    *refundtest.Bank
	tasks   []*task

	dirty  bool // something was written since the last check
	oracle oracle
}

// task is a message in its queue.
type task struct {
	name       string
	deliveries int
	done       bool // acknowledged or parked
	deliver    func(a *actor) order.Result
	request    *refund.Request // nil of an order's own message
}

// actor runs the product's code: a worker with a message, a Refresher, an operator.
type actor struct {
	*World // for what its calls change

	as       *stage.Actor
	answered time.Time // when Stripe last answered on its connection
	unknown  bool      // what it refunds was called unknown before it opened its connection
	request  *refund.Request
}

// late is what the event of a request is for that is executed at last.
type late struct{}

const (
	scope      = order.Scope("lab")
	day        = 24 * time.Hour
	callTime   = 100 * time.Millisecond
	lostTime   = 10 * time.Second // until a lost answer is given up
	function   = time.Minute      // the timeout of a function
	listsFresh = 15 * time.Hour   // after the last change no list lags
	lateGap    = time.Hour        // between the later deliveries of a message
	mostSteps  = 20_000
	// mostDeliveries is how often a message is delivered until its refund must have an
	// end.
	mostDeliveries = 120
)

// newWorld returns a world in which every order that is not late has been charged.
func newWorld(s *stage.Stage, c Case) *World {
	w := &World{
		Stage: s, Case: c, oracle: newOracle(),
		orders: new(ordertest.Memory), intents: &ordertest.Bank{Scope: scope},
	}
	s.CallTime, s.LostTime, s.Prompt, s.Deviations = callTime, lostTime, true, w.deviations
	w.store = refundtest.NewMemory(w.orders)
	w.bank = &refundtest.Bank{
		Intents: w.intents, Now: w.clock, KeyLife: day, Takes: c.Takes, Lag: c.Lag, Keeps: c.Keeps,
	}
	if c.Class == Keyless {
		w.bank.KeyLife = 0
	}
	for _, o := range c.Orders {
		w.sell(o)
	}
	w.describe()
	for n, m := range c.Messages {
		w.send(&task{name: fmt.Sprintf("message %d", n+1), request: &m, deliver: func(a *actor) order.Result {
			ports := a.refunds()
			p := refund.Processor{Store: ports, Provider: ports, Scope: scope, Now: a.as.Clock, CreateTime: lostTime}
			return p.Process(s.Context, m, a.lease())
		}})
	}
	return w
}

func (w *World) describe() {
	if !w.Recording() {
		return
	}
	w.Add("Stripe", fmt.Sprintf("lists lag %v; refunds are pending first: %t; keys keep refusals: %t",
		w.Lag, w.Takes, w.Keeps), "")
	for _, o := range w.Orders {
		w.Add("shop", fmt.Sprintf("sells %s for %d %s; charged: %t", o.ID, o.Amount, o.Currency, !o.Late), "")
	}
	for n, m := range w.Messages {
		what := fmt.Sprintf("sends message %d: refund %s of %s, %d", n+1, m.ID(), m.OrderID(), m.Amount())
		w.Add("shop", what, "")
	}
}

// sell charges an order, or sends its message.
func (w *World) sell(o Order) {
	sold, sent := must(o.order()), w.Now
	p := order.Processor{
		Store: w.orders, Payments: w.intents, Scope: scope, Now: w.clock, ConfirmTime: lostTime,
	}
	if !o.Late {
		p.Process(w.Context, sold, sent, order.Lease{Owner: "charge", From: sent, Until: sent.Add(function)})
		return
	}
	w.send(&task{name: "charge " + string(o.ID), deliver: func(a *actor) order.Result {
		ports, slow := a.charges(), p
		slow.Store, slow.Payments, slow.Now = ports, ports, a.as.Clock
		return slow.Process(w.Context, sold, sent, a.lease())
	}})
}

func (w *World) clock() time.Time { return w.Now }

func (a *actor) lease() order.Lease {
	now := a.as.Clock()
	return order.Lease{Owner: a.as.Name, From: now, Until: now.Add(function)}
}

func (w *World) send(t *task) {
	w.tasks = append(w.tasks, t)
	after := []time.Duration{0, time.Second, time.Hour, 20 * time.Hour}
	w.At(w.Now.Add(after[w.Pick(stage.Variety, len(after))]), t, func() { w.deliver(t) })
}

// play runs the world until every message has ended and nothing is on its way any more,
// then refreshes every order.
func (w *World) play() {
	w.finish()
	w.FaultFree = true
	w.Now = w.Now.Add(listsFresh)
	for _, o := range w.Orders {
		w.refresh(o.ID)
		w.finish()
	}
	if w.Broken == nil {
		w.redrive()
		w.atRest()
	}
}

// redrive delivers the messages that were parked while another delivery of theirs left
// its refund open, as a person does.
func (w *World) redrive() {
	for _, t := range w.tasks {
		if w.statusOf(t.request) == refund.Open {
			t.done = false
			w.deliver(t)
			w.finish()
		}
	}
}

func (w *World) finish() {
	w.Run(func() {
		if w.Steps > mostSteps {
			w.violated(Settles, w.Orders[0].ID, "it does not end")
		}
		w.check()
	})
}

// deliver delivers a message, and again after a gap until it is done.
func (w *World) deliver(t *task) {
	if t.done {
		return
	}
	if t.deliveries++; t.deliveries > mostDeliveries {
		w.violated(Settles, w.orderOf(t), "%s was delivered %d times", t.name, mostDeliveries)
		return
	}
	gap := lateGap
	if t.deliveries <= 3 && t.request != nil {
		gap = w.gaps()[w.Pick(stage.Variety, len(w.gaps()))]
	}
	w.At(w.Now.Add(gap), t, func() { w.deliver(t) })
	w.start("worker", t.name, func(a *actor) {
		a.request = t.request
		r := t.deliver(a)
		w.Add(a.as.Name, string(r.Verdict)+": "+string(r.Reason), "")
		w.ended(t, r)
	})
}

func (w *World) orderOf(t *task) order.ID {
	if t.request == nil {
		return w.Orders[0].ID
	}
	return t.request.OrderID()
}

// start starts an actor, whose clock may be wrong.
func (w *World) start(kind, what string, work func(a *actor)) {
	skew := w.skew()
	w.Now = w.Now.Add(callTime)
	w.Start(kind, what, func(a *stage.Actor) {
		a.Skew = skew
		work(&actor{World: w, as: a})
	})
}

func (w *World) ended(t *task, r order.Result) {
	if r.Verdict == order.Redeliver {
		return
	}
	unsettled := []refund.Status{"", refund.Open, refund.Unknown}
	if r.Verdict == order.Done && t.request != nil && slices.Contains(unsettled, w.statusOf(t.request)) {
		w.violated(Settles, t.request.OrderID(), "%s is done, and refund %s is not", t.name, t.request.ID())
	}
	if r.Reason == refund.ReasonExceeds {
		w.checkExceeds(t)
	}
	t.done = true
	w.Events = slices.DeleteFunc(w.Events, func(e *stage.Event) bool { return e.For == t })
}

// refresh starts a Refresher, as a webhook, the reconciler or an operator does.
func (w *World) refresh(id order.ID) {
	w.start("refresher", "a refresh of "+string(id), func(a *actor) {
		ports := a.refunds()
		f := refund.Refresher{Store: ports, Provider: ports, Scope: scope, Now: a.as.Clock}
		_, err := f.Refresh(w.Context, id)
		w.Add(a.as.Name, fmt.Sprintf("ends: %v", err), "")
		if r, _ := w.orders.Peek(id); err != nil && w.FaultFree && r.Status.Charged() {
			w.violated(AsAtStripe, id, "no fault, and Refresh returns %v", err)
		}
	})
}

func (w *World) cancel(id order.ID) {
	w.start("operator", "a cancel of "+string(id), func(a *actor) {
		o := a.charges()
		c := order.Cancellation{Store: o, Canceler: o, Payments: o, Scope: scope}
		_, err := c.Cancel(w.Context, id, a.as.Clock())
		w.Add(a.as.Name, fmt.Sprintf("ends: %v", err), "")
	})
}

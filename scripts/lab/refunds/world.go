package refunds

import (
	"context"
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// World runs the product in one case. Time is a number, and one actor runs at a time. At
// each call a chooser decides what happens: the usual, or a deviation.
type World struct {
	Case

	ctx     context.Context
	choose  *chooser
	consume Consumer // nil is the product
	now     time.Time
	orders  *ordertest.Memory
	store   *refundtest.Memory
	intents *ordertest.Bank
	bank    *refundtest.Bank

	actors  []*actor // that have not ended
	current *actor   // nil if all are frozen
	tasks   []*task
	events  []event
	begun   int // actors so far
	steps   int

	dirty  bool // something was written since the last check
	oracle oracle
	broken *Violation
	lines  *[]Line // nil if no history is kept
}

// task is a message in its queue.
type task struct {
	name       string
	deliveries int
	done       bool // acknowledged or parked
	deliver    func(a *actor) order.Result
	request    *refund.Request // nil of an order's own message
}

// event is something that happens at a time.
type event struct {
	at   time.Time
	task *task // delivered by it
	late bool  // a request that is executed at last
	do   func()
}

const (
	scope      = order.Scope("lab")
	day        = 24 * time.Hour
	callTime   = 100 * time.Millisecond
	lostTime   = 10 * time.Second // until a lost answer is given up
	function   = time.Minute      // the timeout of a function
	listsFresh = 15 * time.Hour   // after the last change no list lags
	calmGap    = time.Hour        // between the later deliveries of a message
	mostSteps  = 20_000
	// mostDeliveries is how often a message is delivered until its refund must have an
	// end.
	mostDeliveries = 120
)

func epoch() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// newWorld returns a world in which every order that is not late has been charged.
func newWorld(ctx context.Context, c Case, choose *chooser) *World {
	w := &World{
		Case: c, ctx: ctx, choose: choose, now: epoch(), oracle: newOracle(),
		orders: new(ordertest.Memory), intents: &ordertest.Bank{Scope: scope},
	}
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
	for n, m := range c.Messages {
		w.add(&task{name: fmt.Sprintf("message %d", n+1), request: &m, deliver: func(a *actor) order.Result {
			if w.consume != nil {
				return w.consume(ctx, a, n+1, m)
			}
			ports := a.refunds()
			p := refund.Processor{Claims: ports, Provider: ports, Scope: scope, Now: a.clock, CreateTime: lostTime}
			return p.Process(ctx, m, a.lease())
		}})
	}
	return w
}

// sell charges an order, or sends its message.
func (w *World) sell(o Order) {
	sold, sent := must(o.order()), w.now
	p := order.Processor{
		Claims: w.orders, Payments: w.intents, Scope: scope, Now: w.clock, ConfirmTime: lostTime,
	}
	if !o.Late {
		p.Process(w.ctx, sold, sent, order.Lease{Owner: "charge", From: sent, Until: sent.Add(function)})
		return
	}
	w.add(&task{name: "charge " + string(o.ID), deliver: func(a *actor) order.Result {
		ports, slow := a.charges(), p
		slow.Claims, slow.Payments, slow.Now = ports, ports, a.clock
		return slow.Process(w.ctx, sold, sent, a.lease())
	}})
}

func (w *World) clock() time.Time { return w.now }

func (a *actor) lease() order.Lease {
	return order.Lease{Owner: a.name, From: a.clock(), Until: a.clock().Add(function)}
}

// add sends a message.
func (w *World) add(t *task) {
	w.tasks = append(w.tasks, t)
	after := []time.Duration{0, time.Second, time.Hour, 20 * time.Hour}
	w.at(w.now.Add(after[w.choose.pick(len(after))]), event{task: t, do: func() { w.deliver(t) }})
}

func (w *World) at(at time.Time, e event) {
	e.at = at
	w.events = append(w.events, e)
}

// Run runs the world until every message has ended and nothing is on its way any more,
// then refreshes every order. It returns the first violation, or nil.
func (w *World) Run() *Violation {
	w.finish()
	w.choose.calm = true
	w.now = w.now.Add(listsFresh)
	for _, o := range w.Orders {
		w.refresh(o.ID)
		w.finish()
	}
	if w.broken == nil && w.consume == nil {
		w.redrive()
		w.atRest()
	}
	for _, a := range w.actors {
		a.stop()
	}
	return w.broken
}

// redrive delivers the messages that were parked while another delivery of theirs left
// its refund open, as a person does.
func (w *World) redrive() {
	for _, t := range w.tasks {
		if t.request != nil && w.isOpen(t.request) {
			t.done = false
			w.deliver(t)
			w.finish()
		}
	}
}

// finish runs the world until no actor works and nothing is due.
func (w *World) finish() {
	for w.broken == nil {
		next := w.nextEvent()
		switch due := next >= 0 && !w.events[next].at.After(w.now); {
		case due || w.current == nil && next >= 0:
			w.take(next)
		case w.current == nil:
			return
		default:
			w.step()
		}
		if w.steps++; w.steps > mostSteps {
			w.violated(Settles, w.Orders[0].ID, "it does not end")
		}
		w.check()
	}
}

// nextEvent returns the index of the earliest event, or -1.
func (w *World) nextEvent() int {
	next := -1
	for n, e := range w.events {
		if next < 0 || e.at.Before(w.events[next].at) {
			next = n
		}
	}
	return next
}

// take makes an event happen, at its time or now.
func (w *World) take(n int) {
	e := w.events[n]
	w.events = slices.Delete(w.events, n, n+1)
	if e.at.After(w.now) && w.current == nil {
		w.now = e.at
	}
	e.do()
}

// step lets the current actor make its next call, or deviates.
func (w *World) step() {
	a := w.current
	if w.choose.calm {
		w.run(a)
		return
	}
	deviations := w.deviations(a)
	if n := w.choose.deviate(len(deviations) + 1); n > 0 {
		deviations[n-1]()
		return
	}
	w.run(a)
}

// run lets an actor run to its next call or to its end.
func (w *World) run(a *actor) {
	w.current = a
	made, f := a.next, a.fault
	w.now = w.now.Add(callTime)
	if f == lost || f == unanswered {
		w.now = w.now.Add(lostTime)
	}
	if made.name != "" {
		w.happens(a.name, made.name, string(f))
	}
	if _, alive := a.resume(); alive {
		return
	}
	w.actors = slices.DeleteFunc(w.actors, func(other *actor) bool { return other == a })
	w.current = w.awake()
}

// awake returns the actor that began last and is not frozen, or nil.
func (w *World) awake() *actor {
	for _, a := range slices.Backward(w.actors) {
		if !a.frozen {
			return a
		}
	}
	return nil
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
	gap := calmGap
	if t.deliveries <= 3 && t.request != nil {
		gap = w.gaps()[w.choose.pick(len(w.gaps()))]
	}
	w.at(w.now.Add(gap), event{task: t, do: func() { w.deliver(t) }})
	w.begun++
	name := fmt.Sprintf("worker %d", w.begun)
	w.happens("queue", "delivers "+t.name+" to "+name, "")
	w.start(name, w.skew(), func(a *actor) {
		a.request = t.request
		r := t.deliver(a)
		a.happens(a.name, string(r.Verdict)+": "+string(r.Reason), "")
		w.ended(t, r)
	})
}

func (w *World) orderOf(t *task) order.ID {
	if t.request == nil {
		return w.Orders[0].ID
	}
	return t.request.OrderID()
}

// gaps are the times after which a message is delivered again.
func (w *World) gaps() []time.Duration {
	if w.Class == Aged {
		return []time.Duration{16 * time.Minute, 19*time.Hour + 50*time.Minute, 25 * time.Hour, 29 * time.Hour}
	}
	return []time.Duration{
		16 * time.Minute, 0, time.Minute, time.Hour, 10 * time.Hour, 19*time.Hour + 50*time.Minute, 25 * time.Hour,
		29 * time.Hour, 3 * day, 6 * day,
	}
}

// ended notes the result of a delivery.
func (w *World) ended(t *task, r order.Result) {
	if r.Verdict == order.Redeliver {
		return
	}
	if r.Verdict == order.Done && t.request != nil && w.consume == nil && !w.isSettled(t.request) {
		w.violated(Settles, t.request.OrderID(), "%s is done, and refund %s is not", t.name, t.request.ID())
	}
	if r.Reason == refund.ReasonExceeds && w.consume == nil {
		w.checkExceeds(t)
	}
	t.done = true
	w.events = slices.DeleteFunc(w.events, func(e event) bool { return e.task == t })
}

// refresh starts a Refresher, as a webhook, the reconciler or an operator does.
func (w *World) refresh(id order.ID) {
	w.begun++
	name := fmt.Sprintf("refresher %d", w.begun)
	w.happens(name, "starts to refresh "+string(id), "")
	w.start(name, w.skew(), func(a *actor) {
		f := refund.Refresher{Records: records{a.store, a}, Provider: a.refunds(), Scope: scope, Now: a.clock}
		_, err := f.Refresh(a.ctx, id)
		a.happens(a.name, fmt.Sprintf("ends: %v", err), "")
		if err != nil && a.choose.calm && a.isCharged(id) {
			a.violated(AsAtStripe, id, "no fault, and Refresh returns %v", err)
		}
	})
}

// cancel starts an operator who cancels an order.
func (w *World) cancel(id order.ID) {
	w.begun++
	name := fmt.Sprintf("operator %d", w.begun)
	w.happens(name, "starts to cancel "+string(id), "")
	w.start(name, w.skew(), func(a *actor) {
		o := operator{a.orders, a.intents, a}
		c := order.Cancellation{Records: o, Canceler: o, Payments: a.charges(), Scope: scope}
		_, err := c.Cancel(a.ctx, id, a.clock())
		a.happens(a.name, fmt.Sprintf("ends: %v", err), "")
	})
}

// skew returns how wrong the clock of a new actor is.
func (w *World) skew() time.Duration {
	if w.Class == Kind || w.choose.calm {
		return 0
	}
	all := []time.Duration{0, 0, 0, 0, 30 * time.Hour, -30 * time.Hour, time.Hour, -time.Hour}
	return all[w.choose.pick(len(all))]
}

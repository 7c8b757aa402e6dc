package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/stage"
)

// Worker is one delivery, or another task that calls the product. It is a coroutine that
// yields before each of its calls, until the world lets it continue.
type Worker struct {
	*stage.Actor

	world    *World
	task     task
	seen     *oracle.Worker    // what the oracle remembers of it
	handler  *invocation       // of the deployed handler; nil if the worker calls the processor itself
	messages []sqstest.Message // of a delivery; other tasks have none

	next     oracle.Call // the call before which it waits
	fault    Fault       // of the current call
	armed    bool        // the fault has not happened yet
	called   time.Time   // when it came to its next call, by its own clock
	frozenAt time.Time
	stops    bool  // its clock stops while it is frozen
	received trace // all responses
	dead     bool  // or the world has ended
}

// task is what a worker does. A nil function does nothing.
type task struct {
	kind    kind
	of      string // tells it from others of its kind, such as the order of an operator
	run     func(k *Worker)
	failed  func() // when a call of the worker has a fault
	arrived func() // after a late request of the worker
	ended   func() // after run, and after the death of the worker
	threads bool   // run starts goroutines
}

// newWorker returns a worker that has not begun. It is named A to Z, then A1.
func (w *World) newWorker(t task) *Worker {
	name := string(rune('A' + w.born%26))
	if w.born >= 26 {
		name += strconv.Itoa(w.born / 26)
	}
	w.born++
	k := &Worker{world: w, task: t, Actor: w.NewActor(name)}
	k.Of, k.Ended = k, k.ended
	k.seen = &oracle.Worker{Name: k.Name, Begun: k.Now(), Cancels: t.kind == cancel}
	return k
}

func (w *World) begin(k *Worker) {
	run, start := func() { k.task.run(k) }, w.lab.pool.Start
	if k.task.threads {
		start = stage.StartGoroutine
	}
	w.Enter(k.Actor, start(run))
}

// start begins a task of a new worker. The history says who does what with it.
func (w *World) start(t task, who, what, answer string) {
	k := w.newWorker(t)
	if w.Recording() {
		w.Add(who, what+" "+k.Name, answer)
	}
	w.begin(k)
}

// consume does what the deployed handler does with one message: decode, process, decide.
func (k *Worker) consume() {
	m := k.messages[0]
	result := k.process(m)
	d := sqs.Delivery{Count: m.Receives, SentAt: m.Sent}
	policy := k.world.services.policy
	action := sqs.Decide(result, d, k.Now(), 0.5, policy)
	for {
		c := oracle.Call{
			Name: oracle.Reply, Subject: string(action.Verdict),
			Detail: fmt.Sprintf("message %d (%s)", numberOf(m)+1, result.Reason),
		}
		err := k.call(c, func() (response, error) { return k.reply(m, action, result.Reason), nil })
		if err == nil || action.Verdict != order.Park {
			return // without a reply the message comes back
		}
		action = sqs.Action{Verdict: order.Redeliver, Delay: unparkedDelay(d, k.Now(), policy)}
	}
}

// unparkedDelay is the delay of a message that the dead-letter queue did not accept: the
// back-off of any other redelivery, and on its last day the first delay.
func unparkedDelay(d sqs.Delivery, now time.Time, p sqs.Policy) time.Duration {
	failed := order.Result{Verdict: order.Redeliver, Reason: sqs.ReasonParkFailed, Transient: true}
	if a := sqs.Decide(failed, d, now, 0.5, p); a.Verdict == order.Redeliver {
		return a.Delay
	}
	return p.FirstDelay
}

func (k *Worker) process(m sqstest.Message) order.Result {
	lab := k.world.lab
	if poison := k.world.setup.Messages[numberOf(m)].Poison; poison != "" {
		_, err := lab.decoder.Decode(poison)
		return order.Result{Verdict: order.Park, Reason: order.ReasonInvalid, Err: err}
	}
	now := k.Now()
	lease := order.Lease{Owner: "owner-" + k.Name, From: now, Until: now.Add(oracle.FunctionTime)}
	return k.processor().Process(context.Background(), lab.order(m.Body), m.Sent, lease)
}

func (k *Worker) processor() *order.Processor {
	return &order.Processor{
		Store: store{k}, Payments: payments{k}, Scope: scope, Now: k.Now, ConfirmTime: oracle.ConfirmTime,
	}
}

// Now returns the time of the worker's own clock.
func (k *Worker) Now() time.Time { return k.Clock() }

// reply does to the queue what the handler and Lambda do. The queue may refuse, because
// it has delivered the message again since.
func (k *Worker) reply(m sqstest.Message, a sqs.Action, why order.Reason) response {
	w := k.world
	var err error
	r := response{text: "ok"}
	switch a.Verdict {
	case order.Done:
		w.oracle.Acknowledged(numberOf(m))
		err = w.queue.Delete(w.Now, w.queue.orders, m.Handle)
	case order.Park:
		err = k.park(m, why)
	case order.Redeliver:
		if w.Recording() {
			r.text = "it comes back in " + a.Delay.String()
		}
		err = w.hide(m.Handle, a.Delay)
	}
	if err != nil {
		r.text = err.Error()
	}
	return r
}

func (k *Worker) park(m sqstest.Message, why order.Reason) error {
	w := k.world
	k.parked(m, why)
	if w.setup.Messages[numberOf(m)].Poison == "" {
		must(k.noteParked(context.Background(), w.lab.order(m.Body), why, k.Now()))
	}
	draft := sqstest.Draft{Body: m.Body, Attributes: map[string]sqstest.Attribute{
		sqs.AttrReason: sqstest.Text(string(why)), number: m.Attributes[number],
	}}
	if _, err := w.queue.Send(w.Now, w.queue.dead, draft); err != nil {
		return err
	}
	return w.queue.Delete(w.Now, w.queue.orders, m.Handle)
}

func (k *Worker) parked(m sqstest.Message, why order.Reason) {
	d := delivery(m)
	if why == order.ReasonRecordLost && !k.world.incidents.of(k.world.sent[d.Message].ID).restored {
		k.world.incidents.redriven = false // an operator restores the row and redrives the message
	}
	k.world.oracle.Parked(k.seen, d, why)
}

// call yields, and then makes a call with the fault that the world chose meanwhile.
func (k *Worker) call(c oracle.Call, do func() (response, error)) error {
	w := k.world
	k.called = k.Now()
	if k.dead {
		k.die() // another goroutine of it goes on
	}
	k.next = c
	k.Await(stage.Call{})
	if k.dead {
		k.die()
	}
	w.oracle.Calls(k.seen, c, k.called)
	w.markNoted(1)
	if k.fault == Panics {
		panic("a bug")
	}
	fault := k.fault
	r, err := k.withFault(c, do)
	w.oracle.Returned(k.seen, c, r.intent, err)
	w.markNoted(1)
	k.received.text(string(c.Name))
	k.received.text(string(fault))
	k.received.response(r, err)
	if w.Recording() {
		text := r.String()
		switch {
		case k.fault != None && !errors.Is(err, errDenied):
			text = string(k.fault)
		case err != nil:
			text = brief(err)
		}
		w.Add(k.Name, w.describe(c), text)
	}
	if fault.kills() {
		k.die()
	}
	return err
}

// withFault makes a call. Faults at Stripe happen in callStripe.
func (k *Worker) withFault(c oracle.Call, do func() (response, error)) (response, error) {
	if c.ToStripe() {
		return do()
	}
	if k.world.denied(c) {
		k.world.oracle.Disturbed()
		return response{}, errDenied
	}
	switch k.fault { //nolint:exhaustive // with the others the call succeeds
	case NeverArrives, Throttled, Conflicts:
		return response{}, ordertest.ErrConnection
	case ArrivesLate:
		k.sendLate("what "+k.Name+" sent arrives: ", c, func() { _, _ = do() })
		return response{}, ordertest.ErrConnection
	case LosesAnswer:
		_, _ = do()
		return response{}, ordertest.ErrConnection
	}
	return do()
}

func (k *Worker) die() {
	k.dead = true
	k.Die()
}

// late is a request whose worker no longer waits for the response.
type late struct {
	what     string
	message  int
	cause    oracle.Cause
	received trace // distinguishes it from others when states are compared
	happen   func()
	arrived  func() // as in task
}

func (k *Worker) sendLate(what string, c oracle.Call, happen func()) {
	w := k.world
	if w.Recording() {
		what += w.describe(c)
	}
	w.late = append(w.late, late{
		what: what, message: w.message, cause: w.cause, received: k.received, happen: happen,
		arrived: k.task.arrived,
	})
}

func (w *World) arrive(o option) {
	l := w.late[o.n]
	w.late = slices.Delete(slices.Clone(w.late), o.n, o.n+1)
	w.message, w.cause = l.message, l.cause
	w.Now = w.Now.Add(callTime)
	w.happens("network", l.what)
	seen := w.ledgerLength()
	l.happen()
	if l.arrived != nil {
		l.arrived()
	}
	w.addCharges(seen)
}

// ended reports the end of a worker. What it did with a wrong clock or as an older
// release may be felt later.
func (k *Worker) ended() {
	w, disturbs := k.world, k.seen.Old || k.Skew != 0
	if disturbs {
		w.oracle.Disturbed()
	}
	if len(k.messages) > 0 {
		w.oracle.WorkerEnds(k.seen, numberOf(k.messages[0]))
	}
	if k.task.ended != nil {
		k.task.ended()
	}
}

func workerOf(a *stage.Actor) *Worker {
	if a == nil {
		return nil
	}
	return a.Of.(*Worker) //nolint:forcetypeassert // newWorker sets it
}

func (w *World) current() *Worker { return workerOf(w.Current) }

func (w *World) doing(what kind) bool {
	return slices.ContainsFunc(w.Actors, func(a *stage.Actor) bool { return workerOf(a).task.kind == what })
}

func brief(err error) string {
	if p, ok := errors.AsType[*order.PaymentError](err); ok {
		return string(p.Kind)
	}
	return err.Error()
}

// noteParked is not a step: the handler calls it together with its call to the queue, and
// ignores its error.
func (k *Worker) noteParked(ctx context.Context, o order.Order, why order.Reason, at time.Time) error {
	return order.NoteParked(ctx, &k.world.services.store, o, why, at)
}

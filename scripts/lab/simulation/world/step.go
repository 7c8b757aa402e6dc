package world

import (
	"fmt"
	"slices"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/lab/simulation/oracle"
)

func (w *World) take(o option) {
	w.cause = oracle.Cause{}
	w.incidents.rechecked = w.incidents.rechecked && o.onlyRechecks()
	w.lab.actions[o.kind](w, o)
}

func actions() map[kind]func(w *World, o option) {
	return map[kind]func(*World, option){
		call: (*World).step, deliver: (*World).deliver, turn: (*World).turn, arrive: (*World).arrive,
		redrive: (*World).redrive, showTwice: (*World).showTwice, edit: (*World).edit, neighbor: (*World).meet,
		refresh:   func(w *World, o option) { w.refresh(w.incidents.orders[o.n]) },
		cancel:    func(w *World, o option) { w.cancel(w.incidents.orders[o.n]) },
		dashboard: (*World).changeIntent, pay: (*World).changeIntent, clears: (*World).changeIntent,
		bounce: (*World).changeIntent,
		forget: func(w *World, _ option) {
			w.incidents.forgot = true
			w.services.stripe.ForgetKeys()
			w.happens("Stripe", "forgets every idempotency key")
		},
		pause: func(w *World, o option) {
			d := pauses()[o.n]
			w.Now = o.at.Add(d)
			w.happens("world", "no worker runs for "+d.String())
		},
		deny: (*World).deny, allow: (*World).allow,
		event: (*World).sendEvent, eventAgain: (*World).sendEvent, eventLate: (*World).delayEvent,
		eventLost: (*World).loseEvent, reconcile: (*World).reconcile, publish: (*World).publish,
	}
}

// step lets a worker make its next call, with a fault, and run to the one after.
func (w *World) step(o option) {
	k, f := o.worker, o.fault
	if f != None {
		w.disturb()
		if k.task.failed != nil {
			k.task.failed()
		}
	}
	if f.freezes() {
		w.freeze(k, f)
		return
	}
	k.fault, k.armed = f, f != None
	if len(k.messages) > 0 {
		w.message = numberOf(k.messages[0])
	}
	w.Now = w.Now.Add(callTime + f.duration())
	seen := w.ledgerLength()
	w.cause = k.seen.Cause(k.next, k.called)
	w.Resume(k.Actor)
	w.addCharges(seen)
}

func (w *World) freeze(k *Worker, f Fault) {
	k.Frozen, k.frozenAt, k.stops = true, w.Now, f == Suspends
	if w.Recording() {
		w.Add(k.Name, w.describe(k.next), string(f))
	}
	w.Current = w.Awake()
}

func (w *World) turn(o option) {
	k := o.worker
	w.Current = k.Actor
	if !k.Frozen {
		return
	}
	w.disturb() // it may still park something
	if over := k.frozenAt.Add(oracle.FunctionTime); w.Now.Before(over) {
		w.Now = over // a shorter one would be the same as waiting for its turn
	}
	answer := "its clock is right"
	if k.stops {
		k.Skew -= w.Now.Sub(k.frozenAt)
		answer = "its clock stood still"
	}
	k.Frozen = false
	if w.Recording() {
		w.Add(k.Name, "thaws", answer)
	}
}

func (w *World) deliver(o option) {
	if w.Current != nil || o.n > 0 || o.old {
		w.disturb()
	}
	w.Now = o.at
	received := must1(w.queue.Receive(w.Now, w.queue.orders, max(w.setup.Batch, 1), nil))
	if len(received) == 0 {
		w.sendAgain()
		return
	}
	k := w.newWorker(task{kind: deliver, run: (*Worker).consume})
	if k.messages = received; w.setup.Batch > 0 {
		k.useHandler()
	}
	k.seen.Old = o.old
	if o.n > 0 {
		off := w.setup.Clocks[o.n-1]
		k.Skew, k.seen.Absurd = off, off.Abs() > oracle.HonestSkew
	}
	for _, m := range received {
		w.received(k, m)
	}
	alone := w.setup.Batch == 0 && (!w.setup.Releases || !o.old)
	w.oracle.WorkerBegins(k.seen, numberOf(received[0]), alone)
	w.begin(k)
}

func (w *World) received(k *Worker, m sqstest.Message) {
	w.oracle.Delivered(delivery(m))
	switch {
	case m.Receives > 1:
		w.incidents.paused = true
	default:
		w.queue.unseen--
		if w.setup.Gap < oracle.Visibility && !w.setup.Adversarial {
			must(w.queue.ChangeVisibility(w.Now, w.queue.orders, m.Handle, w.setup.Gap))
			w.oracle.Disturbed()
		}
	}
	if w.Recording() {
		what := fmt.Sprintf("delivers message %d to %s", numberOf(m)+1, k.Name)
		switch {
		case k.seen.Old:
			w.Add("queue", what, "of the older release")
		case k.Skew != 0:
			w.Add("queue", what, "whose clock is "+(-k.Skew).String()+" behind")
		default:
			w.Add("queue", what, "")
		}
	}
}

// sendAgain sends again what the queue has lost, under new message ids, after a gap
// beyond the queue's retention.
func (w *World) sendAgain() {
	if w.setup.Gap < oracle.Retention || w.incidents.paused {
		return
	}
	w.incidents.paused, w.queue.oldest = true, w.Now
	for i := range w.setup.Messages {
		if !w.oracle.Answered(i) {
			w.send(i)
		}
	}
}

func (w *World) showTwice(o option) {
	m := o.worker.messages[0]
	if state, latest := w.latest(m.Handle); !latest || state != sqstest.InFlight {
		return // it has been shown again since
	}
	must(w.queue.ChangeVisibility(w.Now, w.queue.orders, m.Handle, 0))
	w.happens("queue", fmt.Sprintf("shows message %d again", numberOf(m)+1))
}

// hide changes the visibility of a message by the handle of any of its receives. An older
// handle moves what another attempt received, so the message may come back early.
func (w *World) hide(handle string, d time.Duration) error {
	if _, latest := w.latest(handle); !latest {
		w.oracle.Disturbed()
	}
	return w.queue.ChangeVisibility(w.Now, w.queue.orders, handle, d)
}

// latest reports whether a handle is that of a message's latest receive, and the
// message's state.
func (w *World) latest(handle string) (sqstest.State, bool) {
	all := must1(w.queue.Messages(w.Now, w.queue.orders))
	i := slices.IndexFunc(all, func(m sqstest.Message) bool { return m.Handle == handle })
	if i < 0 {
		return 0, false
	}
	return all[i].State, true
}

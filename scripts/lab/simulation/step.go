package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// does is a kind of thing that can happen next.
type does int

const (
	goes      does = iota // a worker makes the call before which it stands, perhaps with a fault
	delivers              // the queue delivers
	turns                 // another worker goes on, and thaws if it was frozen
	arrives               // what was on its way arrives, or ends
	redrives              // an operator moves every dead letter back
	refreshes             // an operator asks Stripe about an order
	cancels               // somebody cancels an intent in the Dashboard
	customer              // the customer pays an intent another way
	clears                // the bank says at last that a payment went through
	bounces               // the bank says at last that it did not
	forgets               // Stripe forgets its keys
	twice                 // the queue shows a message that is being worked on
	waits                 // for a while nobody runs
	mistakes              // a person writes an intent into a row that was made for something else
	denies                // an action that the function needs is denied for a while
	allows                // it is allowed again
	neighbors             // another deployment uses its keys for an order with the same id
)

// way is one thing that can happen next.
type way struct {
	does  does
	k     *Worker
	fault Fault
	at    time.Time
	n     int // of a message, an order, an intent, a clock, a wait or an action
	stray stray
	old   bool
}

// waiting are the times for which nobody runs in a restless world; an outage is shorter
// than the queue's memory.
func waiting(n int) time.Duration {
	return []time.Duration{
		30 * time.Second, 10 * time.Minute, time.Hour, 14 * time.Hour, 25 * time.Hour, 5 * 24 * time.Hour,
	}[n]
}

const waitings = 6

// ways lists what can happen next, the usual one first: whoever is running goes on, else
// what is on its way arrives, else the queue delivers, else a frozen worker thaws, else
// operators look after what is left. No way at all is rest.
func (w *World) ways() []way {
	at, waiting := w.nextDelivery()
	usual, more := w.usual(at, waiting)
	if !more {
		return nil
	}
	ways := append(w.lab.ways[:0], usual)
	if k := w.current; k != nil {
		ways = w.faults(ways, k)
	}
	if waiting && !at.After(w.now) && len(w.workers) < cmp.Or(w.Workers, 2) &&
		(w.current != nil || len(w.late) > 0) {
		ways = append(ways, way{does: delivers, at: w.now})
	}
	if waiting && w.current == nil {
		ways = w.others(ways, at)
	}
	for _, k := range w.workers {
		if k != w.current && usual.k != k {
			ways = append(ways, way{does: turns, k: k})
		}
	}
	for i := range w.late {
		if usual.does != arrives || i > 0 {
			ways = append(ways, way{does: arrives, n: i})
		}
	}
	if w.People {
		ways = w.people(ways)
	}
	if w.Restless {
		ways = w.unrest(ways, at, waiting)
	}
	ways = w.outsiders(ways)
	w.lab.ways = ways
	return ways
}

// outsiders lists what administrators, operators and other deployments can do.
func (w *World) outsiders(ways []way) []way {
	if w.Mistake && !w.mistaken {
		ways = w.mistakes(ways)
	}
	if w.Denials {
		ways = w.denials(ways)
	}
	if w.Neighbor && !w.met {
		ways = append(ways, way{does: neighbors, n: w.Variety % 2})
	}
	return ways
}

func (w *World) usual(at time.Time, waiting bool) (usual way, more bool) {
	switch {
	case w.current != nil:
		return way{does: goes, k: w.current}, true
	case len(w.late) > 0:
		return way{does: arrives}, true
	case waiting:
		return way{does: delivers, at: at}, true
	case len(w.workers) > 0:
		return way{does: turns, k: w.workers[0]}, true
	case w.denying():
		return way{does: allows}, true
	case !w.redriven && must1(w.queue.Counts(w.now, w.deadQueue)).Visible > 0:
		return way{does: redrives}, true
	}
	for i, x := range w.oracle.orders {
		if x.touched {
			return way{does: refreshes, n: i}, true
		}
	}
	return way{}, false
}

func (w *World) faults(ways []way, k *Worker) []way {
	for _, f := range faultsOf(k.at.name) {
		ways = append(ways, way{does: goes, k: k, fault: f})
	}
	if w.Rare {
		for _, f := range rareFaultsOf(k.at.name) {
			ways = append(ways, way{does: goes, k: k, fault: f})
		}
	}
	if w.Batch > 0 && k.panics() {
		ways = append(ways, way{does: goes, k: k, fault: Panics})
	}
	return ways
}

// others are deliveries to consumers that are not the usual one.
func (w *World) others(ways []way, at time.Time) []way {
	for i := range w.Clocks {
		ways = append(ways, way{does: delivers, at: at, n: i + 1})
	}
	if w.Releases {
		ways = append(ways, way{does: delivers, at: at, old: true})
	}
	return ways
}

// people can do something at any time.
func (w *World) people(ways []way) []way {
	if !w.forgot {
		ways = append(ways, way{does: forgets})
	}
	for i, x := range w.oracle.orders {
		if r, known := w.row(x.id); known && r.Intent != "" && !w.refreshing() {
			ways = append(ways, way{does: refreshes, n: i})
		}
	}
	for i := range w.stripe.Intents() {
		intent := w.intent(i)
		if !w.ours(intent) {
			continue
		}
		switch intent.Status {
		case stripetest.StatusRequiresConfirmation, stripetest.StatusRequiresAction:
			ways = append(ways, way{does: cancels, n: i})
		case stripetest.StatusRequiresPaymentMethod:
			ways = append(ways, way{does: cancels, n: i}, way{does: customer, n: i})
		case stripetest.StatusProcessing:
			ways = append(ways, way{does: clears, n: i}, way{does: bounces, n: i})
		case stripetest.StatusSucceeded, stripetest.StatusCanceled:
		}
	}
	return ways
}

// unrest is what a queue and its consumers may do at any time.
func (w *World) unrest(ways []way, at time.Time, waiting bool) []way {
	if k := w.current; k != nil && len(k.messages) > 0 {
		ways = append(ways, way{does: twice, k: k})
	}
	for n := range waitings {
		if w.current == nil && waiting && w.mayWait(at, n) {
			ways = append(ways, way{does: waits, at: at, n: n})
		}
	}
	if w.current == nil && must1(w.queue.Counts(w.now, w.deadQueue)).Visible > 0 {
		ways = append(ways, way{does: redrives})
	}
	return ways
}

// mayWait reports whether every message outlives such a pause with a day to spare.
func (w *World) mayWait(at time.Time, n int) bool {
	return at.Add(waiting(n)).Sub(w.oldest) < retention-lastDay
}

// mistakes lists the wrong intents that a person can write into a row without one.
func (w *World) mistakes(ways []way) []way {
	for i, x := range w.oracle.orders {
		r, known := w.row(x.id)
		if !known || r.Status != order.Open || r.Intent != "" {
			continue
		}
		for _, kind := range strays() {
			if kind != otherOrder || w.foreign(x.id) != nil {
				ways = append(ways, way{does: mistakes, n: i, stray: kind})
			}
		}
	}
	return ways
}

// take lets one thing happen.
func (w *World) take(y way) {
	w.deed = deed{}
	switch y.does {
	case goes:
		w.step(y.k, y.fault)
	case delivers:
		w.deliver(y)
	case turns:
		w.turn(y.k)
	case arrives:
		w.arrive(y.n)
	case redrives:
		w.redrive()
	case refreshes:
		w.refresh(w.oracle.orders[y.n])
	case cancels, customer, clears, bounces:
		w.touch(y)
	case forgets:
		w.forgot = true
		w.stripe.ForgetKeys()
		w.happens("Stripe", "forgets every idempotency key")
	case twice:
		w.showTwice(y.k)
	case waits:
		w.now = y.at.Add(waiting(y.n))
		w.happens("world", "nobody runs for "+waiting(y.n).String())
	case mistakes:
		w.mistake(w.oracle.orders[y.n], y.stray)
	case denies:
		w.deny(actions()[y.n])
	case allows:
		w.allow()
	case neighbors:
		w.meet(y.n == 1)
	}
}

// happens tells of something that no worker did.
func (w *World) happens(who, what string) {
	w.oracle.disturbed()
	w.redriven = false
	if w.telling {
		w.tell(who, "", what, "")
	}
}

// step lets a worker make the call before which it stands, with a fault, and go on to its
// next one.
func (w *World) step(k *Worker, f Fault) {
	if f != None {
		w.oracle.disturbed()
		w.redriven = false
		if k.asks != "" {
			w.oracle.of(k.asks).touched = true // the operator has to ask again
		}
	}
	if f.freezes() {
		k.frozen, k.frozenAt, k.losesTime = true, w.now, f == Suspends
		if w.telling {
			w.tell(k.name, k.at.to(), k.at.String(), string(f))
		}
		w.current = w.awake()
		return
	}
	k.fault, k.armed = f, f != None
	if len(k.messages) > 0 {
		w.acting = numberOf(k.messages[0])
	}
	w.now = w.now.Add(callTime)
	switch f { //nolint:exhaustive // the others take no time
	case TimesOut, ArrivesLate:
		w.now = w.now.Add(confirmTime)
	case Slow:
		w.now = w.now.Add(functionTime - confirmTime)
	case Overruns:
		w.now = w.now.Add(functionTime)
	}
	told := w.toldMoney()
	w.deed = k.deed()
	if at, alive := k.next(); alive {
		k.at = at
	} else {
		w.bury(k)
	}
	w.noteMoney(told)
}

// turn gives another worker its turn, and thaws it if it is frozen.
func (w *World) turn(k *Worker) {
	w.current = k
	if !k.frozen {
		return
	}
	w.oracle.disturbed()
	w.redriven = false // it may park something yet
	if over := k.frozenAt.Add(functionTime); w.now.Before(over) {
		w.now = over // a shorter one would be no different from waiting for one's turn
	}
	answer := "its clock is right"
	if k.losesTime {
		k.behind += w.now.Sub(k.frozenAt)
		answer = "its clock stood still"
	}
	k.frozen = false
	if w.telling {
		w.tell(k.name, "", "thaws", answer)
	}
}

func (w *World) bury(k *Worker) {
	k.stop()
	w.oracle.buried(w, k)
	w.workers = slices.DeleteFunc(w.workers, func(o *Worker) bool { return o == k })
	w.current = w.awake()
}

// awake is the worker that has run longest and is not frozen, or nil.
func (w *World) awake() *Worker {
	for _, k := range w.workers {
		if !k.frozen {
			return k
		}
	}
	return nil
}

// nextDelivery is when the queue can next deliver something, and whether it ever will.
func (w *World) nextDelivery() (at time.Time, waiting bool) {
	counts := must1(w.queue.Counts(w.now, w.ordersQueue))
	if counts.Empty() {
		return time.Time{}, false
	}
	at = w.now
	if !w.deliverable(counts) {
		at, waiting = w.queue.Next(w.now)
		if !waiting {
			return time.Time{}, false
		}
	}
	if over := w.start.Add(w.Gap); w.unseen == 0 && !w.paused && w.Gap > visibility && at.Before(over) {
		at = over
	}
	return at, true
}

// deliverable reports whether the queue has something to deliver now. A visible message
// of a FIFO queue waits as long as one of its group is in flight.
func (w *World) deliverable(counts sqstest.Counts) bool {
	if !w.FIFO || counts.Visible == 0 {
		return counts.Visible > 0
	}
	messages := must1(w.queue.Messages(w.now, w.ordersQueue))
	return slices.ContainsFunc(messages, func(m sqstest.Message) bool {
		return m.State == sqstest.Visible && !slices.ContainsFunc(messages, func(o sqstest.Message) bool {
			return o.Group == m.Group && o.State == sqstest.InFlight
		})
	})
}

// deliver starts a worker with the next messages.
func (w *World) deliver(y way) {
	if w.current != nil || y.n > 0 || y.old {
		w.oracle.disturbed()
		w.redriven = false
	}
	w.now = y.at
	received := must1(w.queue.Receive(w.now, w.ordersQueue, max(w.Batch, 1), nil))
	if len(received) == 0 {
		w.sendAgain()
		return
	}
	k := w.newWorker(received)
	k.old = y.old
	if y.n > 0 {
		k.behind, k.absurd = -w.Clocks[y.n-1], w.Clocks[y.n-1].Abs() > honestSkew
	}
	for _, m := range received {
		w.received(k, m)
	}
	w.oracle.born(w, k)
	w.begin(k)
}

func (w *World) received(k *Worker, m sqstest.Message) {
	w.oracle.delivered(w, m)
	switch {
	case m.Receives > 1:
		w.paused = true
	default:
		w.unseen--
		if w.Gap < visibility && !w.Restless {
			must(w.queue.ChangeVisibility(w.now, w.ordersQueue, m.Receipt, w.Gap))
			w.oracle.disturbed()
		}
	}
	if w.telling {
		w.tell("queue", k.name, fmt.Sprintf("delivers message %d to %s", numberOf(m)+1, k.name), k.oddity())
	}
}

// sendAgain is for a gap beyond the queue's memory: what it forgot, the producer sends
// again, under a new message id.
func (w *World) sendAgain() {
	if w.Gap < retention || w.paused {
		return
	}
	w.paused, w.oldest = true, w.now
	for i, m := range w.Messages {
		if !w.oracle.of(m.ID).answered[i] {
			w.send(i)
		}
	}
}

// begin lets a worker come to its first call.
func (w *World) begin(k *Worker) {
	w.workers, w.current = append(w.workers, k), k
	if first, alive := k.next(); alive {
		k.at = first
	} else {
		w.bury(k)
	}
}

func (w *World) showTwice(k *Worker) {
	m := k.messages[0]
	if state, latest := w.latest(m.Receipt); !latest ||
		state != sqstest.InFlight { // it has been shown again since
		return
	}
	must(w.queue.ChangeVisibility(w.now, w.ordersQueue, m.Receipt, 0))
	w.happens("queue", fmt.Sprintf("shows message %d again", numberOf(m)+1))
}

// hide changes the visibility of a message by a handle of any of its receives. With an
// older handle it moves what another attempt was given, and a message that comes back too
// early for that says nothing about a calm world.
func (w *World) hide(handle string, d time.Duration) error {
	if _, latest := w.latest(handle); !latest {
		w.oracle.disturbed()
	}
	return w.queue.ChangeVisibility(w.now, w.ordersQueue, handle, d)
}

// latest reports whether a handle is that of a message's latest receive, and where the
// message is.
func (w *World) latest(handle string) (sqstest.State, bool) {
	all := must1(w.queue.Messages(w.now, w.ordersQueue))
	i := slices.IndexFunc(all, func(m sqstest.Message) bool { return m.Receipt == handle })
	if i < 0 {
		return 0, false
	}
	return all[i].State, true
}

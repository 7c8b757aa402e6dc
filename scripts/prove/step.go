package prove

import (
	"slices"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order/ordertest"
)

// mostWorkers is how many deliveries overlap by choice.
const mostWorkers = 2

// ways lists what can happen next, the usual one first: whoever is running goes on, else the queue delivers, else a frozen
// worker thaws. No way at all is rest.
func (w *World) ways() []func() {
	var ways []func()
	k := w.current
	if k != nil {
		ways = append(ways, func() { w.step(k, None) })
		for _, f := range faultsOf(k.at.name) {
			ways = append(ways, func() { w.step(k, f) })
		}
	}
	at, waiting := w.nextDelivery()
	switch {
	case k == nil && waiting:
		ways = append(ways, func() { w.deliver(at) })
	case k != nil && waiting && !at.After(w.now) && len(w.workers) < mostWorkers:
		ways = append(ways, func() { w.deliver(at) })
	}
	for _, other := range w.workers {
		if other != k {
			ways = append(ways, func() { w.turn(other) })
		}
	}
	return ways
}

// step lets a worker make the call before which it stands, with a fault, and go on to its next one.
func (w *World) step(k *worker, f Fault) {
	if f != None {
		w.oracle.disturbed()
	}
	if f.freezes() {
		k.frozen, k.frozenAt, k.losesTime = true, w.now, f == Suspends
		w.tell(k.name, k.at.what, string(f))
		w.current = w.awake()
		return
	}
	k.fault, w.acting = f, w.numbers[k.message.ID]
	w.now = w.now.Add(callTime)
	ledger := len(w.stripe.Ledger())
	if at, alive := k.next(); alive {
		k.at = at
	} else {
		w.bury(k)
	}
	w.noteMoney(ledger)
}

// turn gives another worker its turn, and thaws it if it is frozen.
func (w *World) turn(k *worker) {
	w.current = k
	if !k.frozen {
		return
	}
	w.oracle.disturbed()
	if over := k.frozenAt.Add(functionTime); w.now.Before(over) {
		w.now = over // a shorter one would be no different from waiting for one's turn
	}
	answer := "its clock is right"
	if k.losesTime {
		k.behind += w.now.Sub(k.frozenAt)
		answer = "its clock stood still"
	}
	k.frozen = false
	w.tell(k.name, "thaws", answer)
}

func (w *World) bury(k *worker) {
	k.stop()
	w.workers = slices.DeleteFunc(w.workers, func(o *worker) bool { return o == k })
	w.current = w.awake()
}

// awake is the worker that has run longest and is not frozen, or nil.
func (w *World) awake() *worker {
	for _, k := range w.workers {
		if !k.frozen {
			return k
		}
	}
	return nil
}

// nextDelivery is when the queue can next deliver something, and whether it ever will.
func (w *World) nextDelivery() (at time.Time, waiting bool) {
	held := must1(w.queue.Messages(w.now, orders))
	if len(held) == 0 {
		return time.Time{}, false
	}
	at = w.now
	if !slices.ContainsFunc(held, func(m sqstest.Message) bool { return m.State == sqstest.Visible }) {
		at, waiting = w.queue.Next(w.now)
		if !waiting {
			return time.Time{}, false
		}
	}
	again := !slices.ContainsFunc(held, func(m sqstest.Message) bool { return m.Receives == 0 })
	if over := w.start.Add(w.Gap); again && !w.paused && w.Gap > visibility && at.Before(over) {
		at = over
	}
	return at, true
}

// deliver starts a worker with the next message.
func (w *World) deliver(at time.Time) {
	if w.current != nil {
		w.oracle.disturbed()
	}
	w.now = at
	received := must1(w.queue.Receive(at, orders, 1, nil))
	if len(received) == 0 {
		return // it expired
	}
	m := received[0]
	w.oracle.delivered(w, m)
	switch {
	case m.Receives > 1:
		w.paused = true
	case w.Gap < visibility:
		must(w.queue.ChangeVisibility(at, orders, m.Receipt, w.Gap))
		w.oracle.disturbed()
	}
	k := w.newWorker(m)
	w.workers, w.current = append(w.workers, k), k
	w.tell("queue", "delivers "+w.numbered(m)+" to "+k.name, "")
	if first, alive := k.next(); alive {
		k.at = first
	} else {
		w.bury(k)
	}
}

// Fault is what goes wrong with one call. Dying before a call is dying after the one before it.
type Fault string

// The faults.
const (
	None         Fault = ""
	Dies         Fault = "done, and the worker dies"
	LosesAnswer  Fault = "done, but the answer is lost"
	NeverArrives Fault = "lost on the way there"
	FailsAfter   Fault = "done, but a 500, kept under the key"
	FailsBefore  Fault = "a 500 without effect, kept under the key"
	NotNow       Fault = "429"
	Freezes      Fault = "not yet: the worker freezes"
	Suspends     Fault = "not yet: the worker and its clock stand still"
)

func (f Fault) freezes() bool { return f == Freezes || f == Suspends }

// faultsOf lists what can go wrong with a call.
func faultsOf(c ordertest.Call) []Fault {
	switch c {
	case ordertest.Prepare, ordertest.Confirm:
		return []Fault{Dies, LosesAnswer, NeverArrives, FailsAfter, FailsBefore, NotNow, Freezes, Suspends}
	case ordertest.Read:
		return []Fault{Dies, NeverArrives, NotNow, Freezes, Suspends}
	case ordertest.Begin, ordertest.Bind, ordertest.Finish, ordertest.Release:
		return []Fault{Dies, LosesAnswer, NeverArrives, Freezes, Suspends}
	case reply:
		return []Fault{NeverArrives, Freezes}
	}
	return nil
}

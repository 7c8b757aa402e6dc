package main

import (
	"slices"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// history is something that happens sooner or later, and its right outcome.
type history struct {
	name    string
	happens func(*world)
	want    outcome
}

// outcome is the end of a history.
type outcome struct {
	Charged int    // successful charges
	Row     string // the status of the order's row
	Parked  int    // messages that a person has to see, with a reason
}

// histories are in the order of the steps: each breaks the handler of the step before.
func histories() []history {
	once := outcome{1, paid, 0}
	return []history{
		{"twice at once", twiceAtOnce, once},
		{"sent twice", sentTwice, once},
		{"killed before the charge", killedBefore, once},
		{"killed after the charge", killedAfter, once},
		{"slower than its lease", slow, once},
		{"back after a day", backAfterADay, once},
		{"500 at create", failureAtCreate, once},
		{"500 after the charge", failureAfter, once},
		{"500 before the charge", failureBefore, once},
		{"a decline", decline, outcome{0, declined, 0}},
		{"never payable", neverPayable, outcome{0, refused, 1}},
		{"killed before it parks", killedBeforeParking, outcome{0, refused, 1}},
		{"another order, same id", another, outcome{1, paid, 1}},
	}
}

// historyNamed returns the history of this name, which must exist.
func historyNamed(name string) history {
	all := histories()
	return all[slices.IndexFunc(all, func(h history) bool { return h.name == name })]
}

func (h history) play(handle handler) *world {
	w := newWorld(handle)
	h.happens(w)
	return w
}

func (h history) transcript(handle handler) string {
	w := h.play(handle)
	return w.out.String() + "=> " + h.result(w) + "\n"
}

const visa = "pm_card_visa"

func shirt() order { return order{ID: "ORD-1", Amount: 3998, Card: visa} }

// inTurn sends and delivers an order in one message after the other, and then what is
// left.
func inTurn(w *world, o order, messages ...string) {
	for _, id := range messages {
		w.send(id, o)
		w.deliver(id)
	}
	w.drain()
}

func kill() { panic(died{}) }

// SQS delivers at least once, and now and then twice at once. The charge takes a moment.
func twiceAtOnce(w *world) {
	w.on["A before the charge"] = func() { w.deliver("m1") }
	inTurn(w, shirt(), "m1")
}

// The shop got no answer from SQS, and sent the order again: a new message.
func sentTwice(w *world) { inTurn(w, shirt(), "m1", "m2") }

// Lambda ends a function at its timeout, for want of memory, or with its machine.
func killedBefore(w *world) {
	w.on["A before the charge"] = kill
	inTurn(w, shirt(), "m1")
}

// The same a moment later: the customer has paid, and the table does not say so.
func killedAfter(w *world) {
	w.on["A after the charge"] = kill
	inTurn(w, shirt(), "m1")
}

// No function is killed, but one is paused, or waits for Stripe for longer than its
// lease.
func slow(w *world) {
	w.on["A before the charge"] = func() {
		w.pass(2*lease, "A waits, and its lease is over")
		w.deliver("m1")
	}
	inTurn(w, shirt(), "m1")
}

// Killed after the charge, and the message waits: the queue was stopped, or the message
// came to the dead-letter queue and a person sent it back. Stripe keeps a key for a day.
func backAfterADay(w *world) {
	w.send("m1", shirt())
	w.on["A after the charge"] = kill
	w.deliver("m1")
	w.pass(25*time.Hour, "the queue was stopped, and runs again")
	w.drain()
}

// Stripe answers 500 once, and keeps this answer under the key, as every other.
func failureBefore(w *world) { failure(w, stripetest.ServerErrorBeforeEffect, stripetest.Confirm) }

// The same, and the card was charged before.
func failureAfter(w *world) { failure(w, stripetest.ServerErrorAfterEffect, stripetest.Confirm) }

// The same, before there is an intent.
func failureAtCreate(w *world) { failure(w, stripetest.ServerErrorBeforeEffect, stripetest.Create) }

func failure(w *world, kind stripetest.FaultKind, on stripetest.Endpoint) {
	w.stripe.Fail(stripetest.Fault{Kind: kind, On: on})
	inTurn(w, shirt(), "m1")
}

// The bank declines. That is an answer, not an error.
func decline(w *world) {
	inTurn(w, order{ID: "ORD-1", Amount: 3998, Card: "pm_card_chargeDeclined"}, "m1")
}

// Stripe charges 50 cents at least.
func neverPayable(w *world) { inTurn(w, order{ID: "ORD-1", Amount: 20, Card: visa}, "m1") }

// The same, and the function is killed between its record and the dead-letter queue.
func killedBeforeParking(w *world) {
	w.on["A after the record"] = kill
	neverPayable(w)
}

// A mistake in the shop: it uses an id again, for another order.
func another(w *world) {
	w.send("m1", shirt())
	w.deliver("m1")
	inTurn(w, order{ID: "ORD-1", Amount: 7500, Card: visa}, "m2")
}

// result compares the outcome with the right one.
func (h history) result(w *world) string {
	got, unexplained := outcome{}, false
	for _, c := range w.stripe.Ledger() {
		if c.Outcome == stripetest.Charged {
			got.Charged++
		}
	}
	for _, r := range w.table { // of the order, or of its messages
		got.Row = r.Status
	}
	for _, why := range w.dead {
		if unexplained = unexplained || why == ""; why != "" {
			got.Parked++
		}
	}
	switch {
	case got == h.want:
		return "right"
	case got.Charged > h.want.Charged:
		return "CHARGED TWICE"
	case unexplained:
		return "STUCK" // in the dead-letter queue without a reason, perhaps charged
	case got.Charged < h.want.Charged:
		return "LOST"
	case got.Parked < h.want.Parked:
		return "DROPPED"
	}
	return "NOT RECORDED"
}

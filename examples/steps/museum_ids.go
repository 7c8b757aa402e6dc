package main

import (
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// lookThenCharge looks first, and charges if it sees nothing.
func lookThenCharge(d *delivery, m message) verdict {
	if d.get(m.Order.ID).Status == paid {
		return done
	}
	if d.charge(m.Order, "").Status != 200 {
		return failed
	}
	d.update(m.Order.ID, anyway(), func(r *row) { r.Status = paid })
	return done
}

// The first click is a request that has begun; the second reaches another worker.
func doubleClick(w *world) {
	w.on["A before the charge"] = func() {
		w.send("click-2", shirt())
		w.deliver("click-2")
	}
	inTurn(w, shirt(), "click-1")
}

// A day later the same person sees that the invoice is still open.
func againTomorrow(w *world) {
	w.send("click-1", shirt())
	w.on["A before the charge"] = failOnce(w, stripetest.ServerErrorAfterEffect)
	w.deliver("click-1")
	w.pass(25*time.Hour, "the invoice is still open, and somebody clicks again")
	inTurn(w, shirt(), "click-2")
}

// idOfTheRun makes the order id itself, so its key and its row are new in each run. The
// sample has a random id, and stores an order where this charges one.
func idOfTheRun(d *delivery, m message) verdict {
	o := m.Order
	o.ID = "uuid-" + d.name
	if d.charge(o, o.ID).Status != 200 {
		return again
	}
	d.update(o.ID, anyway(), func(r *row) { r.Status = paid })
	return done
}

// The function has stored the order, and fails.
func killedBeforeItReturns(w *world) {
	w.on["A before it returns"] = kill
	inTurn(w, shirt(), "m1")
}

// noLook is sure that it is called once.
func noLook(d *delivery, m message) verdict {
	if d.charge(m.Order, "").Status != 200 {
		return failed
	}
	d.update(m.Order.ID, anyway(), func(r *row) { r.Status = paid })
	return done
}

// One renewal is due, and two instances of a class have registered the callback.
func twoCallbacks(w *world) { inTurn(w, shirt(), "hook-1", "hook-2") }

// rowOfTheRequest makes a row and an intent for each request.
func rowOfTheRequest(d *delivery, m message) verdict {
	d.update(m.ID, anyway(), func(r *row) { r.Status = started })
	if d.charge(m.Order, "").Status != 200 {
		return failed
	}
	d.update(m.ID, anyway(), func(r *row) { r.Status = paid })
	return done
}

// The charge succeeds so slowly that the customer presses the button again.
func slowAndRepeated(w *world) {
	w.on["A after the charge"] = func() {
		w.pass(2*time.Minute, "the response is slow, and the customer tries again")
		w.send("post-2", shirt())
		w.deliver("post-2")
	}
	inTurn(w, shirt(), "post-1")
}

// browserAndBackend charges in two places, of which one writes what it did.
func browserAndBackend(d *delivery, m message) verdict {
	if d.charge(m.Order, "").Status != 200 {
		return failed
	}
	if m.ID == "backend" {
		d.update(m.Order.ID, anyway(), func(r *row) { r.Status = paid })
	}
	return done
}

// The customer confirms the card, and then the order.
func browserThenBackend(w *world) { inTurn(w, shirt(), "browser", "backend") }

package main

import "orderonce/adapters/stripe/stripetest"

// failOnce returns what makes the next call to Stripe fail.
func failOnce(w *world, kind stripetest.FaultKind) func() {
	return func() { w.stripe.Fail(stripetest.Fault{Kind: kind}) }
}

// transaction is rolled back as a whole and repeated when another transaction has changed
// its row. The charge is not rolled back.
func transaction(d *delivery, m message) verdict {
	if d.get(m.Order.ID).Status == paid {
		return done
	}
	if d.charge(m.Order, "").Status != 200 {
		return failed
	}
	unchanged := condition{"nobody changed it", func(r row) bool { return r.Status == "" }}
	if _, ok := d.update(m.Order.ID, unchanged, func(r *row) { r.Status = paid }); !ok {
		return again
	}
	return done
}

// The row is changed between the charge and the write, by a webhook for example.
func changedMeanwhile(w *world) {
	w.on["A after the charge"] = func() { w.changed = true }
	inTurn(w, shirt(), "m1")
}

// inProgress keeps a record by its key, which is in progress no longer than the function
// can run. The work has no key.
func inProgress(d *delivery, m message) verdict {
	r, ok := d.update(m.Order.ID, d.free(), d.claim)
	if !ok {
		return held(r)
	}
	if d.charge(m.Order, "").Status != 200 {
		return again
	}
	d.update(m.Order.ID, anyway(), func(r *row) { r.Status = paid })
	return done
}

// keyOfTheAttempt makes a row for the attempt, whose id is the key, and deletes it when
// the attempt fails.
func keyOfTheAttempt(d *delivery, m message) verdict {
	capture := "capt_" + d.name
	d.update(capture, anyway(), func(r *row) { r.Status = started })
	if d.charge(m.Order, capture).Status != 200 {
		d.forget(capture)
		return again
	}
	d.update(capture, anyway(), func(r *row) { r.Status = paid })
	return done
}

// Stripe has charged the card, and the response is lost on the way.
func lostResponse(w *world) {
	w.on["A before the charge"] = failOnce(w, stripetest.LoseResponse)
	inTurn(w, shirt(), "m1")
}

// unknownIsNotPaid writes that it does not know, and the next call does not ask.
func unknownIsNotPaid(d *delivery, m message) verdict {
	if d.get(m.Order.ID).Status == paid {
		return done
	}
	outcome := paid
	if d.charge(m.Order, "").Status != 200 {
		outcome = "unknown"
	}
	d.update(m.Order.ID, anyway(), func(r *row) { r.Status = outcome })
	return done
}

// The provider's answer is no answer, and the merchant sends the capture again, with the
// same id.
func unknownThenAgain(w *world) {
	w.on["A before the charge"] = failOnce(w, stripetest.ServerErrorAfterEffect)
	inTurn(w, shirt(), "call-1", "call-2")
}

package main

import (
	"fmt"

	"orderonce/adapters/stripe/stripetest"
)

// step6 classifies responses. The outcome is the state of the intent, whichever attempt
// confirmed it. A response that does not show one, such as a 500, leaves the order to the
// next attempt, which confirms under a key of its own. That is safe: an intent is charged
// at most once.
func step6(d *delivery, m message) verdict {
	id := m.Order.ID
	r, ok := d.update(id, d.free(), d.claim)
	if !ok {
		return held(r)
	}
	if r.Intent == "" {
		created := d.create(m.Order, fmt.Sprint(id, "/create/", r.Attempt))
		if created.Status != 200 {
			return again
		}
		if r, ok = d.update(id, d.unbound(), func(r *row) { r.Intent = created.Intent.ID }); !ok {
			return again
		}
	}
	outcome := outcomeOf(d.read(r.Intent))
	if outcome == "" {
		outcome = outcomeOf(d.confirm(r.Intent, fmt.Sprint(id, "/confirm/", r.Attempt)))
	}
	if outcome == "" {
		return again
	}
	if _, ok = d.update(id, d.mine(), func(r *row) { r.Status = outcome }); !ok {
		return again
	}
	return done
}

// outcomeOf returns the outcome that a response shows, or "" if it shows none.
func outcomeOf(r stripetest.Response) string {
	intent := r.Intent
	if r.Error != nil {
		intent = r.Error.Intent // a decline carries the intent
	}
	switch {
	case intent == nil: // 500, 429, 400
	case intent.Status == "succeeded":
		return paid
	case intent.Status == "requires_payment_method" && intent.LastError != nil:
		return declined
	}
	return ""
}

package world

import (
	"context"
	"net/http"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
)

const (
	apiKey      = "sk_test_pretend"
	intentsPath = "/v1/payment_intents"
)

// callStripe sends one request to the Stripe double, with the fault that the world chose
// for the call. The second request of a call has no fault.
func (k *Worker) callStripe(r stripetest.Request) stripetest.Response {
	k.seen.Misled(false) // this request may be a retry
	w, machine := k.world, k.world.services.stripe
	if w.setup.Releases && k.seen.Old && r.Path == intentsPath {
		// The older release sends another parameter, and so it uses another key.
		r.Form.Set("description", "an order")
		r.Key += ".older"
	}
	fault := k.fault
	if !k.armed {
		fault = None
	}
	k.armed = false
	if w.denied(k.next) {
		w.oracle.Disturbed()
		fault = Forbidden
	}
	if kind, known := fault.atStripe(); known {
		machine.Fail(stripetest.Fault{Kind: kind})
		defer machine.Heal() // a replayed response does not use the fault up
		return machine.Do(w.Now, r)
	}
	switch fault { //nolint:exhaustive // the others happen elsewhere
	case ArrivesLate:
		k.sendLate("what "+k.Name+" sent to Stripe arrives: ", k.next, func() { machine.Do(w.Now, r) })
		return stripetest.Response{Lost: true}
	case TimesOut:
		ticket, refused := machine.Begin(w.Now, r)
		if refused != nil {
			return *refused
		}
		what := "Stripe finishes what " + k.Name + " asked for: "
		k.sendLate(what, k.next, func() { machine.End(w.Now, ticket) })
		return stripetest.Response{Lost: true}
	case Refuses:
		return refusal()
	case Mistakes:
		return k.mislead(machine.Do(w.Now, r))
	}
	return machine.Do(w.Now, r)
}

// refusal is a 400 that does not show the intent's status, as for a deleted customer.
// Stripe finds the error before it executes the request, so it stores nothing under the
// key.
func refusal() stripetest.Response {
	return stripetest.Response{Status: http.StatusBadRequest, Error: &stripetest.Error{
		Type: "invalid_request_error", Code: "resource_missing", Param: "customer", Message: "No such customer.",
	}}
}

// mislead replaces the intent in a response by one that was made for something else.
func (k *Worker) mislead(r stripetest.Response) stripetest.Response {
	switch {
	case r.Intent != nil:
		r.Intent = k.world.misdescribed(r.Intent)
		k.seen.Misled(true)
	case r.Error != nil && r.Error.Intent != nil:
		e := *r.Error
		e.Intent = k.world.misdescribed(e.Intent)
		r.Error = &e
		k.seen.Misled(true)
	}
	return r
}

func (w *World) exchange(_ context.Context, r stripe.Request) (stripe.Response, error) {
	response := w.services.caller.callStripe(stripetest.Request{
		Method: r.Method, Path: r.Path, APIKey: apiKey, Key: r.Key, Form: r.Params,
	})
	if response.Lost {
		return stripe.Response{}, stripetest.ErrLost
	}
	return stripe.Response{Status: response.Status, Header: response.Header(), Body: response.Body()}, nil
}

type wire struct{ world *World }

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	return stripetest.RoundTrip(r, w.world.services.caller.callStripe)
}

package simulation

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order/ordertest"
)

const (
	apiKey = "sk_test_pretend"
	root   = "/v1/payment_intents"
)

// callStripe sends one request to the Stripe double, with the fault that the world has
// chosen for the call. A call's second request has no fault.
func (k *Worker) callStripe(r stripetest.Request) stripetest.Response {
	k.knows.wrong = false // this request may be a retry
	if k.Releases && k.old && r.Path == root {
		// The older release sends another parameter, and so it uses another key.
		r.Form.Set("description", "an order")
		r.Key += ".older"
	}
	fault := k.fault
	if !k.armed {
		fault = None
	}
	k.armed = false
	if k.denied(k.at) {
		k.oracle.disturbed()
		fault = Forbidden
	}
	if kind, known := fault.atStripe(); known {
		k.stripe.Fail(stripetest.Fault{Kind: kind})
		defer k.stripe.Heal() // a replayed response does not use the fault up
		return k.stripe.Do(k.now, r)
	}
	switch fault { //nolint:exhaustive // the others happen elsewhere
	case ArrivesLate:
		k.later("what "+k.name+" sent to Stripe arrives: ", k.at, func() { k.stripe.Do(k.now, r) })
		return stripetest.Response{Lost: true}
	case TimesOut:
		ticket, refused := k.stripe.Begin(k.now, r)
		if refused != nil {
			return *refused
		}
		k.later("Stripe finishes what "+k.name+" asked for: ", k.at, func() { k.stripe.End(k.now, ticket) })
		return stripetest.Response{Lost: true}
	case Refuses:
		return refusal()
	case Mistakes:
		return k.withWrongIntent(k.stripe.Do(k.now, r))
	}
	return k.stripe.Do(k.now, r)
}

// refusal is a 400 that does not show the intent's status, as for a deleted customer.
// Stripe finds the error before it executes the request, so it stores nothing under the
// key.
func refusal() stripetest.Response {
	return stripetest.Response{Status: http.StatusBadRequest, Error: &stripetest.Error{
		Type: "invalid_request_error", Code: "resource_missing", Param: "customer", Message: "No such customer.",
	}}
}

// withWrongIntent replaces the intent in a response by one that was made for something
// else.
func (k *Worker) withWrongIntent(r stripetest.Response) stripetest.Response {
	switch {
	case r.Intent != nil:
		r.Intent, k.knows.wrong = k.wrong(r.Intent), true
	case r.Error != nil && r.Error.Intent != nil:
		e := *r.Error
		e.Intent, k.knows.wrong = k.wrong(e.Intent), true
		r.Error = &e
	}
	return r
}

// exchange carries the adapter's requests to the Stripe double without HTTP.
func (w *World) exchange(_ context.Context, r stripe.Request) (stripe.Response, error) {
	return w.asking.exchange(stripetest.Request{
		Method: r.Method, Path: r.Path, APIKey: apiKey, Key: r.Key.String(), Form: r.Params,
	})
}

// exchange carries one request to the Stripe double.
func (k *Worker) exchange(r stripetest.Request) (stripe.Response, error) {
	response := k.callStripe(r)
	if response.Lost {
		return stripe.Response{}, ordertest.ErrConnection
	}
	return stripe.Response{Status: response.Status, Header: response.Header(), Body: response.Body()}, nil
}

// wire carries the adapter's HTTP requests to the Stripe double without a socket.
type wire struct{ *World }

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w.asking.roundTrip(r) }

func (k *Worker) roundTrip(r *http.Request) (*http.Response, error) {
	form := r.URL.Query()
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		must(err)
		form = must1(url.ParseQuery(string(body)))
	}
	response, err := k.exchange(stripetest.Request{
		Method: r.Method, Path: r.URL.Path, APIKey: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
		Key: r.Header.Get("Idempotency-Key"), Form: form,
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: response.Status, Header: response.Header, Request: r,
		Body: io.NopCloser(bytes.NewReader(response.Body)), ContentLength: int64(len(response.Body)),
	}, nil
}

// RoundTrip carries the HTTP requests of a Consumer to the Stripe double. Each request is
// a step.
func (k *Worker) RoundTrip(r *http.Request) (response *http.Response, err error) {
	what := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/")
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		what += " under " + key
	}
	err = k.call(call{name: pays, detail: what}, func() (answer, error) {
		response, err = k.roundTrip(r) //nolint:bodyclose // the caller closes it
		if err != nil {
			return answer{}, err
		}
		return answer{text: strconv.Itoa(response.StatusCode)}, nil
	})
	return response, err
}

package simulation

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

const (
	apiKey = "sk_test_pretend"
	root   = "/v1/payment_intents"
)

// ask carries one request to the pretend Stripe, with the fault that the world has chosen for the call; a call's second
// request has none.
func (k *Worker) ask(r stripetest.Request) stripetest.Response {
	k.knows.wrong = false // the worker may have asked again
	if k.Releases && k.old && r.Path == root {
		r.Form.Set("description", "an order") // the older release asks in other words,
		r.Key += ".older"                     // and under other words goes another key
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
		defer k.stripe.Heal() // a replayed answer may have left it armed
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
		return k.mistaken(k.stripe.Do(k.now, r))
	}
	return k.stripe.Do(k.now, r)
}

// refusal is a 400 that says nothing of what became of the intent, as for a customer who was
// deleted. Stripe finds out before it begins, and so keeps nothing under the key.
func refusal() stripetest.Response {
	return stripetest.Response{Status: http.StatusBadRequest, Error: &stripetest.Error{
		Type: "invalid_request_error", Code: "resource_missing", Param: "customer", Message: "No such customer.",
	}}
}

// mistaken returns an answer with the intent of something else in it.
func (k *Worker) mistaken(a stripetest.Response) stripetest.Response {
	switch {
	case a.Intent != nil:
		a.Intent, k.knows.wrong = k.wrong(a.Intent), true
	case a.Error != nil && a.Error.Intent != nil:
		e := *a.Error
		e.Intent, k.knows.wrong = k.wrong(e.Intent), true
		a.Error = &e
	}
	return a
}

// wire carries the deployed adapter's HTTP to the pretend Stripe without a socket.
type wire struct{ *World }

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w.asking.exchange(r) }

func (k *Worker) exchange(r *http.Request) (*http.Response, error) {
	form := r.URL.Query()
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		must(err)
		form = must1(url.ParseQuery(string(body)))
	}
	a := k.ask(stripetest.Request{
		Method: r.Method, Path: r.URL.Path, APIKey: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
		Key: r.Header.Get("Idempotency-Key"), Form: form,
	})
	if a.Lost {
		return nil, ordertest.ErrConnection
	}
	body := a.Body()
	header := http.Header{"Request-Id": {a.RequestID.String()}, "Content-Type": {"application/json"}}
	if a.Replayed() {
		header.Set("Idempotent-Replayed", "true")
	}
	if a.ShouldRetry != "" {
		header.Set("Stripe-Should-Retry", a.ShouldRetry)
	}
	return &http.Response{
		StatusCode: a.Status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// RoundTrip carries a design's HTTP to the pretend Stripe: each request is a step.
func (k *Worker) RoundTrip(r *http.Request) (answered *http.Response, err error) {
	what := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/")
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		what += " under " + key
	}
	err = k.call(call{name: pays, detail: what}, func() (answer, error) {
		answered, err = k.exchange(r) //nolint:bodyclose // the design's, and it holds nothing
		if err != nil {
			return answer{}, err
		}
		return answer{text: strconv.Itoa(answered.StatusCode)}, nil
	})
	return answered, err
}

// thin is order.Payments directly over the pretend Stripe, for the mass of worlds: the deployed adapter spends most of its
// time on HTTP and JSON. A test holds it to the deployed one, history by history.
type thin struct{ *Worker }

func (t thin) prepare(o order.Order, k order.Key) (order.Intent, error) {
	total, payment := o.Total(), o.Payment()
	i, replayed, err := t.do(http.MethodPost, root, k.String(), "", url.Values{
		"amount": {strconv.FormatInt(total.Amount, 10)}, "currency": {string(total.Currency)},
		"customer": {payment.Customer}, "payment_method": {payment.Method}, "capture_method": {"automatic"},
		"automatic_payment_methods[enabled]": {"true"}, "automatic_payment_methods[allow_redirects]": {"never"},
		"metadata[orderId]": {string(o.ID())}, "metadata[scope]": {string(scope)}, "metadata[fingerprint]": {string(o.Fingerprint())},
	})
	if err == nil && replayed {
		return t.read(i.ID)
	}
	return i, err
}

func (t thin) confirm(id order.IntentID, k order.Key) (order.Intent, error) {
	i, replayed, err := t.do(http.MethodPost, root+"/"+string(id)+"/confirm", k.String(), id, url.Values{"off_session": {"true"}})
	if err == nil && replayed && i.State != order.Succeeded {
		return t.read(id)
	}
	return i, err
}

func (t thin) read(id order.IntentID) (order.Intent, error) {
	i, _, err := t.do(http.MethodGet, root+"/"+string(id), "", id, nil)
	return i, err
}

func (t thin) find(id order.ID) ([]order.Intent, error) {
	query := "metadata['orderId']:'" + string(id) + "' AND metadata['scope']:'" + string(scope) + "'"
	a := t.ask(stripetest.Request{
		Method: http.MethodGet, Path: root + "/search", APIKey: apiKey, Form: url.Values{"query": {query}},
	})
	if a.Lost || a.Garbled || a.Status != http.StatusOK {
		said := stripetest.Error{}
		if a.Error != nil {
			said = *a.Error
		}
		return nil, &order.PaymentError{Kind: kindOf(a, said, false), RequestID: "", Err: errThin}
	}
	found := make([]order.Intent, len(a.List.Intents))
	for n, i := range a.List.Intents {
		found[n] = intentOf(i)
	}
	return found, nil
}

var errThin = errors.New("the pretend Stripe said so")

func (t thin) do(method, path, key string, bound order.IntentID, form url.Values) (i order.Intent, replayed bool, err error) {
	a := t.ask(stripetest.Request{Method: method, Path: path, APIKey: apiKey, Key: key, Form: form})
	replayed = a.Replayed()
	intent, said := a.Intent, stripetest.Error{}
	if a.Error != nil {
		said, intent = *a.Error, a.Error.Intent
	}
	there := intent != nil && !a.Lost && !a.Garbled
	settles := a.Status == http.StatusPaymentRequired || said.Code == "payment_intent_unexpected_state"
	if there && (a.Status == http.StatusOK || settles && (bound != "" || !replayed)) {
		return intentOf(intent), replayed, nil
	}
	return i, replayed, &order.PaymentError{Kind: kindOf(a, said, replayed), RequestID: "", Err: errThin}
}

func kindOf(a stripetest.Response, said stripetest.Error, replayed bool) order.ErrorKind {
	switch {
	case a.Lost:
		return order.Unknown
	case a.Status >= 400 && replayed && !a.Garbled:
		return order.Replayed
	case a.Garbled:
		return order.Unknown
	case a.Status == http.StatusConflict, a.Status == http.StatusTooManyRequests, a.Status == http.StatusServiceUnavailable:
		return order.Unavailable
	case a.Status >= 500:
		return order.Unknown
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden, a.Status == http.StatusNotFound:
		return order.Misconfigured
	case said.Type == "idempotency_error":
		return order.KeyReused
	}
	return order.Refused
}

func intentOf(i *stripetest.Intent) order.Intent {
	states := map[stripetest.Status]order.IntentState{
		stripetest.StatusRequiresPaymentMethod: order.NeedsMethod, stripetest.StatusRequiresConfirmation: order.NeedsConfirmation,
		stripetest.StatusRequiresAction: order.NeedsAction, stripetest.StatusProcessing: order.Processing,
		stripetest.StatusSucceeded: order.Succeeded, stripetest.StatusCanceled: order.IntentCanceled,
	}
	got := order.Intent{
		ID: order.IntentID(i.ID), State: states[i.Status], Total: order.Money{Amount: i.Amount, Currency: order.Currency(i.Currency)},
		OrderID: order.ID(i.OrderID()), Scope: order.Scope(i.Metadata["scope"]),
		Fingerprint: order.Fingerprint(i.Metadata["fingerprint"]), Mode: order.TestMode,
	}
	if i.LastError != nil {
		got.Failure = order.Failure{Code: i.LastError.Code, DeclineCode: i.LastError.DeclineCode}
	}
	return got
}

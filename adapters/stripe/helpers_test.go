package stripe_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

const (
	testKey  = "sk_test_pretend4242"
	scope    = order.Scope("test")
	intentID = order.IntentID("pi_3Pretend")
)

// intentJSON is a PaymentIntent as Stripe sends it, with more fields than the adapter
// reads.
func intentJSON(status, lastError string) string { return intentWithCharge(status, lastError, null) }

// intentWithCharge is a PaymentIntent with a latest charge.
func intentWithCharge(status, lastError, charge string) string {
	return `{"id":"pi_3Pretend","object":"payment_intent","amount":2500,"amount_received":0,` +
		`"currency":"eur","livemode":false,` +
		`"client_secret":"pi_3Pretend_secret_canary","customer":"cus_canary","payment_method":"pm_canary",` +
		`"status":"` + status + `",` +
		`"metadata":{"orderId":"ORD-1","scope":"test","fingerprint":"v1:0"},` +
		`"last_payment_error":` + lastError + `,"latest_charge":` + charge + `,"next_action":null}`
}

// errorJSON is an error response. rest are its fields beside the message.
func errorJSON(rest string) string { return `{"error":{"message":"m","doc_url":"d",` + rest + `}}` }

// errorWithIntent is an error response with an intent inside.
func errorWithIntent(rest, intent string) string {
	return errorJSON(rest + `,"payment_intent":` + intent)
}

// JSON of the parts of responses: last errors, charges, and the fields of an error
// response.
const (
	null          = "null"
	declinedError = `{"type":"card_error","code":"card_declined",` +
		`"decline_code":"insufficient_funds","message":"m",` +
		`"payment_method":{"id":"pm_canary","object":"payment_method","card":{"last4":"4242"}}}`
	uncodedError   = `{"type":"card_error","decline_code":"do_not_honor","message":"m"}`
	typedError     = `{"type":"api_error","message":"m"}`
	charge         = `"ch_3Pretend"`
	expandedCharge = `{"id":"ch_3Pretend","object":"charge","failure_code":"authentication_required","outcome":{` +
		`"network_status":"declined_by_network","reason":"authentication_required","type":"issuer_declined"},` +
		`"status":"failed"}`
	authenticationError = `{"type":"card_error","code":"authentication_required",` +
		`"decline_code":"authentication_required","message":"m"}`
	cardDeclined    = `"type":"card_error","code":"card_declined","decline_code":"generic_decline"`
	cardError       = `"type":"card_error"`
	unexpectedState = `"type":"invalid_request_error","code":"payment_intent_unexpected_state"`
	invalidRequest  = `"type":"invalid_request_error"`
	resourceMissing = `"type":"invalid_request_error","code":"resource_missing"`
	keyMismatch     = `"type":"idempotency_error"`
	keyInUse        = `"type":"idempotency_error","code":"idempotency_key_in_use"`
	apiError        = `"type":"api_error"`
)

// response is a response of Stripe's.
type response struct {
	status   int
	replayed bool
	body     string
}

func ok(body string) response { return response{http.StatusOK, false, body} }

func replay(status int, body string) response { return response{status, true, body} }

// failure is an error response, with an intent inside unless intent is "".
func failure(status int, rest, intent string) response {
	if intent == "" {
		return response{status, false, errorJSON(rest)}
	}
	return response{status, false, errorWithIntent(rest, intent)}
}

func (r response) header() http.Header {
	header := http.Header{"Request-Id": {"req_pretend"}}
	if r.replayed {
		header.Set("Idempotent-Replayed", "true")
	}
	return header
}

func (r response) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	maps.Copy(w.Header(), r.header())
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, r.body)
}

// roundTrip is the response without a network.
func (r response) roundTrip(req *http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader(r.body))
	return &http.Response{StatusCode: r.status, Header: r.header(), Body: body, Request: req}, nil
}

// methods are the methods of order.Payments that return an intent, by name.
func methods(tb testing.TB, p *stripe.Payments) map[string]func(context.Context) (order.Intent, error) {
	tb.Helper()
	o := newOrder(tb, "pm_card_visa")
	return map[string]func(context.Context) (order.Intent, error){
		"prepare": func(ctx context.Context) (order.Intent, error) {
			return p.Prepare(ctx, o, order.PrepareKey(scope, o.ID()))
		},
		"confirm": func(ctx context.Context) (order.Intent, error) {
			return p.Confirm(ctx, intentID, order.ConfirmKey(scope, o.ID(), 1))
		},
		"read": func(ctx context.Context) (order.Intent, error) { return p.Read(ctx, intentID) },
	}
}

const all = "prepare confirm read"

// declinedIntent is an intent whose last confirmation was declined.
func declinedIntent() string { return intentJSON("requires_payment_method", declinedError) }

// requireKey is the transport of every test: it fails a test that sends a write without
// an idempotency key.
type requireKey struct {
	t    testing.TB
	next http.RoundTripper
}

func (k requireKey) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Header.Get("Idempotency-Key") == "" {
		k.t.Errorf("%s %s without an Idempotency-Key", r.Method, r.URL.Path)
	}
	return k.next.RoundTrip(r)
}

// roundTripFunc is a transport without a network.
type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newPayments(tb testing.TB, url string, next http.RoundTripper) *stripe.Payments {
	tb.Helper()
	if next == nil {
		own := &http.Transport{MaxIdleConnsPerHost: 50}
		tb.Cleanup(own.CloseIdleConnections)
		next = own
	}
	return stripe.New(stripe.Options{
		Key: testKey, BaseURL: url, Scope: scope, Timeout: 10 * time.Second, Transport: requireKey{tb, next},
	})
}

// serving is a Payments that calls a server with this handler.
func serving(tb testing.TB, handler http.HandlerFunc) *stripe.Payments {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return newPayments(tb, server.URL, nil)
}

// responding is a Payments whose every request gets one response, without a network.
func responding(tb testing.TB, res response) *stripe.Payments {
	tb.Helper()
	return newPayments(tb, "", roundTripFunc(res.roundTrip))
}

// newOrder is an order of 2500 eur with a payment method, apart from the changes.
func newOrder(tb testing.TB, method string, changes ...func(*order.Draft)) order.Order {
	tb.Helper()
	draft := order.Draft{
		ID: "ORD-1", CustomerID: "CUST-1", Currency: "eur",
		Lines:   []order.Line{{SKU: "MUG", Quantity: 2, UnitAmount: 1250}},
		Payment: order.Payment{Customer: "cus_pretend", Method: method},
	}
	for _, change := range changes {
		change(&draft)
	}
	o, err := order.New(draft)
	must(tb, err)
	return o
}

// total changes the total of an order, which has its currency in its id.
func total(m order.Money) func(*order.Draft) {
	return func(d *order.Draft) {
		d.ID, d.Currency = "ORD-"+string(m.Currency), string(m.Currency)
		d.Lines = []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: m.Amount}}
	}
}

// kindOf is the kind of an error of a Payments, which must be a *order.PaymentError.
func kindOf(tb testing.TB, err error) order.ErrorKind {
	tb.Helper()
	if err == nil {
		return ""
	}
	return paymentError(tb, err).Kind
}

func paymentError(tb testing.TB, err error) *order.PaymentError {
	tb.Helper()
	e, ok := errors.AsType[*order.PaymentError](err)
	if !ok {
		tb.Fatalf("got %T %v, want an *order.PaymentError", err, err)
	}
	return e
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

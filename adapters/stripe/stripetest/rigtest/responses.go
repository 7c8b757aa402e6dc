// Package rigtest connects the packages of the Stripe adapter with canned responses, and
// with the Stripe double, for their tests.
package rigtest

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
	"orderonce/adapters/stripe/charge"
	"orderonce/domain/order"
)

// The API key, the scope and the intent of the tests.
const (
	Key      = "sk_test_pretend4242"
	Scope    = order.Scope("test")
	IntentID = order.IntentID("pi_3Pretend")
)

// Intent is a PaymentIntent as Stripe sends it, with more fields than the adapter reads.
func Intent(status, lastError string) string { return IntentWithCharge(status, lastError, Null) }

// IntentWithCharge is a PaymentIntent with a latest charge.
func IntentWithCharge(status, lastError, charge string) string {
	return `{"id":"pi_3Pretend","object":"payment_intent","amount":2500,"amount_received":0,` +
		`"currency":"eur","livemode":false,` +
		`"client_secret":"pi_3Pretend_secret_canary","customer":"cus_canary","payment_method":"pm_canary",` +
		`"status":"` + status + `",` +
		`"metadata":{"orderId":"ORD-1","scope":"test","fingerprint":"v1:0"},` +
		`"last_payment_error":` + lastError + `,"latest_charge":` + charge + `,"next_action":null}`
}

// DeclinedIntent is an intent whose last confirmation was declined.
func DeclinedIntent() string { return Intent("requires_payment_method", DeclinedError) }

// Error is an error response. rest are its fields beside the message.
func Error(rest string) string { return `{"error":{"message":"m","doc_url":"d",` + rest + `}}` }

// ErrorWithIntent is an error response with an intent inside.
func ErrorWithIntent(rest, intent string) string {
	return Error(rest + `,"payment_intent":` + intent)
}

// JSON of the parts of responses: last errors, charges, and the fields of an error
// response.
const (
	Null          = "null"
	DeclinedError = `{"type":"card_error","code":"card_declined",` +
		`"decline_code":"insufficient_funds","message":"m",` +
		`"payment_method":{"id":"pm_canary","object":"payment_method","card":{"last4":"4242"}}}`
	Charge         = `"ch_3Pretend"`
	ExpandedCharge = `{"id":"ch_3Pretend","object":"charge","failure_code":"authentication_required",` +
		`"outcome":{"network_status":"declined_by_network","reason":"authentication_required",` +
		`"type":"issuer_declined"},` +
		`"status":"failed"}`
	CardDeclined    = `"type":"card_error","code":"card_declined","decline_code":"generic_decline"`
	UnexpectedState = `"type":"invalid_request_error","code":"payment_intent_unexpected_state"`
	InvalidRequest  = `"type":"invalid_request_error"`
	ResourceMissing = `"type":"invalid_request_error","code":"resource_missing"`
	KeyMismatch     = `"type":"idempotency_error"`
	KeyInUse        = `"type":"idempotency_error","code":"idempotency_key_in_use"`
	RateLimit       = `"code":"rate_limit"`
	APIError        = `"type":"api_error"`
)

// Response is a response of Stripe's.
type Response struct {
	Status   int
	Replayed bool
	Body     string
}

// OK is a response with status 200.
func OK(body string) Response { return Response{http.StatusOK, false, body} }

// Raw is a response with any status and body.
func Raw(status int, body string) Response { return Response{status, false, body} }

// Replay is a response that was stored under the idempotency key.
func Replay(status int, body string) Response { return Response{status, true, body} }

// Failure is an error response, with an intent inside unless intent is "".
func Failure(status int, rest, intent string) Response {
	if intent == "" {
		return Response{status, false, Error(rest)}
	}
	return Response{status, false, ErrorWithIntent(rest, intent)}
}

func (r Response) header() http.Header {
	header := http.Header{"Request-Id": {"req_pretend"}}
	if r.Replayed {
		header.Set("Idempotent-Replayed", "true")
	}
	return header
}

// ServeHTTP sends the response.
func (r Response) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	maps.Copy(w.Header(), r.header())
	w.WriteHeader(r.Status)
	_, _ = io.WriteString(w, r.Body)
}

// RoundTrip is the response without a network.
func (r Response) RoundTrip(req *http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader(r.Body))
	return &http.Response{StatusCode: r.Status, Header: r.header(), Body: body, Request: req}, nil
}

// RoundTripFunc is a transport without a network.
type RoundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// RequireKey is the transport of every test: it fails a test that sends a write without
// an idempotency key.
type RequireKey struct {
	TB   testing.TB
	Next http.RoundTripper
}

// RoundTrip sends a request.
func (k RequireKey) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Header.Get("Idempotency-Key") == "" {
		k.TB.Errorf("%s %s without an Idempotency-Key", r.Method, r.URL.Path)
	}
	return k.Next.RoundTrip(r)
}

// Options are those of a client that calls url over next, which may be nil.
func Options(tb testing.TB, url string, next http.RoundTripper) stripe.Options {
	tb.Helper()
	if next == nil {
		own := &http.Transport{MaxIdleConnsPerHost: 50}
		tb.Cleanup(own.CloseIdleConnections)
		next = own
	}
	return stripe.Options{
		Key: Key, BaseURL: url, Scope: Scope, Timeout: 10 * time.Second, Transport: RequireKey{tb, next},
	}
}

// Serving are the options of a client whose server has this handler.
func Serving(tb testing.TB, handler http.HandlerFunc) stripe.Options {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return Options(tb, server.URL, nil)
}

// Responding are the options of a client whose every request gets one response, without a
// network.
func Responding(tb testing.TB, r Response) stripe.Options {
	tb.Helper()
	return Options(tb, "", RoundTripFunc(r.RoundTrip))
}

// Methods are the methods of order.Payments that return an intent, by name.
func Methods(tb testing.TB, o stripe.Options) map[string]func(context.Context) (order.Intent, error) {
	tb.Helper()
	p, ordered := charge.New(o), NewOrder(tb, "pm_card_visa")
	return map[string]func(context.Context) (order.Intent, error){
		"prepare": func(ctx context.Context) (order.Intent, error) {
			return p.Prepare(ctx, ordered, order.PrepareKey(Scope, ordered.ID()))
		},
		"confirm": func(ctx context.Context) (order.Intent, error) {
			return p.Confirm(ctx, IntentID, order.ConfirmKey(Scope, ordered.ID(), 1))
		},
		"read": func(ctx context.Context) (order.Intent, error) { return p.Read(ctx, IntentID) },
	}
}

// NewOrder is an order of 2500 eur with a payment method, apart from the changes.
func NewOrder(tb testing.TB, method string, changes ...func(*order.Draft)) order.Order {
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
	Must(tb, err)
	return o
}

// Total changes the total of an order, which has its currency in its id.
func Total(m order.Money) func(*order.Draft) {
	return func(d *order.Draft) {
		d.ID, d.Currency = "ORD-"+string(m.Currency), string(m.Currency)
		d.Lines = []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: m.Amount}}
	}
}

// KindOf is the kind of an error of a call, which must be a *order.PaymentError.
func KindOf(tb testing.TB, err error) order.ErrorKind {
	tb.Helper()
	if err == nil {
		return ""
	}
	return PaymentError(tb, err).Kind
}

// PaymentError is the error of a call.
func PaymentError(tb testing.TB, err error) *order.PaymentError {
	tb.Helper()
	e, ok := errors.AsType[*order.PaymentError](err)
	if !ok {
		tb.Fatalf("got %T %v, want an *order.PaymentError", err, err)
	}
	return e
}

// Must ends the test on an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

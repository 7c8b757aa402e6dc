// Package rigtest connects the packages of the Stripe adapter with canned responses, and
// with the Stripe double, for their tests.
package rigtest

import (
	"context"
	"errors"
	"maps"
	"net/http"
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
func Intent(status string) string { return IntentWith(status, Null, Null) }

// IntentWith is a PaymentIntent with a last error and a latest charge.
func IntentWith(status, lastError, charge string) string {
	return `{"id":"pi_3Pretend","object":"payment_intent","amount":2500,"amount_received":0,` +
		`"currency":"eur","livemode":false,"created":1790000000,` +
		`"client_secret":"pi_3Pretend_secret_canary","customer":"cus_canary","payment_method":"pm_canary",` +
		`"status":"` + status + `",` +
		`"metadata":{"orderId":"ORD-1","scope":"test","fingerprint":"v1:0"},` +
		`"last_payment_error":` + lastError + `,"latest_charge":` + charge + `,"next_action":null}`
}

// DeclinedIntent is an intent whose last confirmation was declined.
func DeclinedIntent() string { return IntentWith("requires_payment_method", DeclinedError, Null) }

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

// Raw is a response with any status and body.
func Raw(status int, body string) stripe.Response {
	header := http.Header{"Request-Id": {"req_pretend"}, "Date": {"Tue, 22 Sep 2026 13:33:20 GMT"}}
	return stripe.Response{Status: status, Header: header, Body: []byte(body)}
}

// OK is a response with status 200.
func OK(body string) stripe.Response { return Raw(http.StatusOK, body) }

// Replay is a response that was stored under the idempotency key.
func Replay(r stripe.Response) stripe.Response {
	r.Header.Set("Idempotent-Replayed", "true")
	return r
}

// Failure is an error response with these fields beside the message.
func Failure(status int, fields string) stripe.Response {
	return Raw(status, `{"error":{"message":"m","doc_url":"d",`+fields+`}}`)
}

// FailureWith is an error response with an intent inside.
func FailureWith(status int, fields, intent string) stripe.Response {
	return Failure(status, fields+`,"payment_intent":`+intent)
}

// Handler sends a response over HTTP.
func Handler(r stripe.Response) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), r.Header)
		w.WriteHeader(r.Status)
		_, _ = w.Write(r.Body)
	}
}

// Responding are the options of a client that gets these responses in order, the last one
// again and again, without a network.
func Responding(responses ...stripe.Response) stripe.Options {
	return Exchanging(func(stripe.Request) (stripe.Response, error) {
		next := responses[0]
		if len(responses) > 1 {
			responses = responses[1:]
		}
		return next, nil
	})
}

// Exchanging are the options of a client whose requests get the responses of a function.
func Exchanging(respond func(stripe.Request) (stripe.Response, error)) stripe.Options {
	return stripe.Options{
		Key: Key, Scope: Scope, Now: func() time.Time { return time.Unix(1_790_000_000, 0) },
		Exchange: func(_ context.Context, r stripe.Request) (stripe.Response, error) { return respond(r) },
	}
}

// RoundTripFunc is a transport without a network.
type RoundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

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

// NewOrder is an order of 2500 eur with a payment method.
func NewOrder(tb testing.TB, method string) order.Order {
	tb.Helper()
	return OrderOf(tb, method, order.Money{Amount: 2500, Currency: "eur"})
}

// OrderOf is an order with a payment method and a total. Another currency than eur is in
// its id.
func OrderOf(tb testing.TB, method string, m order.Money) order.Order {
	tb.Helper()
	id := "ORD-1"
	if m.Currency != "eur" {
		id = "ORD-" + string(m.Currency)
	}
	o, err := order.New(order.Draft{
		ID: id, CustomerID: "CUST-1", Currency: string(m.Currency),
		Lines:   []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: m.Amount}},
		Payment: order.Payment{Customer: "cus_pretend", Method: method},
	})
	Must(tb, err)
	return o
}

// KindOf is the kind of an error of a call, which must be a *order.PaymentError.
func KindOf(tb testing.TB, err error) order.ErrorKind {
	tb.Helper()
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*order.PaymentError](err)
	if !ok {
		tb.Fatalf("got %T %v, want an *order.PaymentError", err, err)
	}
	return e.Kind
}

// Must ends the test on an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

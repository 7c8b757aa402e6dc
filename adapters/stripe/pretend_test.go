package stripe_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

const (
	pretendKey = "sk_test_pretend4242"
	scope      = order.Scope("test")
	intentID   = order.IntentID("pi_3Pretend")
)

// keyed is the way out for every request of this package's tests: none may ask for a change without a key.
type keyed struct {
	t    testing.TB
	next http.RoundTripper
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Header.Get("Idempotency-Key") == "" {
		k.t.Errorf("%s %s without an Idempotency-Key", r.Method, r.URL.Path)
	}
	return k.next.RoundTrip(r)
}

// roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func open(tb testing.TB, url string, next http.RoundTripper) *stripe.Payments {
	tb.Helper()
	if next == nil {
		own := &http.Transport{MaxIdleConnsPerHost: 50}
		tb.Cleanup(own.CloseIdleConnections)
		next = own
	}
	return stripe.New(stripe.Options{
		Key: pretendKey, BaseURL: url, Scope: scope, Timeout: 10 * time.Second, Transport: keyed{tb, next},
	})
}

// answering is a Payments whose every call is answered by one handler.
func answering(tb testing.TB, handler http.HandlerFunc) *stripe.Payments {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return open(tb, server.URL, nil)
}

func orderOf(tb testing.TB, method string) order.Order {
	tb.Helper()
	o, err := order.New(order.Draft{
		ID: "ORD-1", CustomerID: "CUST-1", Currency: "eur",
		Lines:   []order.Line{{SKU: "MUG", Quantity: 2, UnitAmount: 1250}},
		Payment: order.Payment{Customer: "cus_pretend", Method: method},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// kindOf is what an error of a Payments means; it must be a *order.PaymentError.
func kindOf(tb testing.TB, err error) order.ErrorKind {
	tb.Helper()
	var e *order.PaymentError
	if err != nil && !errors.As(err, &e) {
		tb.Fatalf("got %T %v, want an *order.PaymentError", err, err)
	}
	if err == nil {
		return ""
	}
	return e.Kind
}

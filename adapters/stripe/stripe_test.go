package stripe_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// TestRequests pins every byte that is sent to Stripe.
//
// If the parameters of Prepare change, order.PrepareKey must change too. Stripe refuses
// different parameters under a known key, so every order in flight during a deployment
// would be parked.
func TestRequests(t *testing.T) {
	t.Parallel()
	const common = "Accept-Encoding: gzip\nAuthorization: Bearer " + rigtest.Key
	const agent = "Stripe-Version: 2023-10-16\nUser-Agent: Stripe/v1 GoBindings/76.25.0\n"
	const form = "Content-Type: application/x-www-form-urlencoded\n"
	want := map[string]string{
		"prepare": "POST /v1/payment_intents\n" + common + "\nContent-Length: 324\n" + form +
			"Idempotency-Key: test/order/ORD-1/prepare\n" + agent + "\n" +
			"amount=2500&automatic_payment_methods[allow_redirects]=never&automatic_payment_methods[enabled]=true" +
			"&capture_method=automatic&currency=eur&customer=cus_pretend&metadata[fingerprint]=" +
			url.QueryEscape(string(rigtest.NewOrder(t, "pm_card_visa").Fingerprint())) +
			"&metadata[orderId]=ORD-1&metadata[scope]=test&payment_method=pm_card_visa",
		"confirm": "POST /v1/payment_intents/pi_3Pretend/confirm\n" + common + "\nContent-Length: 16\n" + form +
			"Idempotency-Key: test/order/ORD-1/confirm/1\n" + agent + "\noff_session=true",
		"read": "GET /v1/payment_intents/pi_3Pretend\n" + common + "\n" + agent + "\n",
	}
	requests := make(chan string, 10)
	p := rigtest.Serving(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- canonical(r)
		rigtest.OK(rigtest.Intent("succeeded", rigtest.Null)).ServeHTTP(w, r)
	})
	for name, call := range rigtest.Methods(t, p) {
		if _, err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for range len(requests) {
			got = append(got, strings.Split(<-requests, "\n")...)
		}
		if diff := cmp.Diff(got, strings.Split(want[name], "\n")); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

// canonical is a request as one text, with its headers sorted.
func canonical(r *http.Request) string {
	var text strings.Builder
	text.WriteString(r.Method + " " + r.RequestURI + "\n")
	_ = r.Header.Write(&text) // sorted
	sent, _ := io.ReadAll(r.Body)
	return strings.ReplaceAll(text.String(), "\r", "") + "\n" + string(sent)
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	t.Parallel()
	options := rigtest.Options(t, "", rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent", r.Method, r.URL)
		return nil, http.ErrAbortHandler
	}))
	p, o, ctx := charge.New(options), rigtest.NewOrder(t, "pm_card_visa"), t.Context()
	key := order.ConfirmKey(rigtest.Scope, o.ID(), 1)
	type result struct {
		intent order.Intent
		err    error
	}
	of := func(intent order.Intent, err error) result { return result{intent, err} }
	for claim, tt := range map[string]struct {
		got  result
		want order.ErrorKind
	}{
		"a creation without a key":         {of(p.Prepare(ctx, o, order.Key{})), order.KindRefused},
		"a confirmation without a key":     {of(p.Confirm(ctx, rigtest.IntentID, order.Key{})), order.KindRefused},
		"a confirmation without an id":     {of(p.Confirm(ctx, "", key)), order.KindRefused},
		"a confirmation with a path as id": {of(p.Confirm(ctx, "pi_1/cancel?", key)), order.KindRefused},
		"a read without an id":             {of(p.Read(ctx, "")), order.KindMisconfigured},
	} {
		if got := tt.got; rigtest.KindOf(t, got.err) != tt.want || got.intent != (order.Intent{}) {
			t.Errorf("%s: got %v, %v, want %s", claim, got.intent, got.err, tt.want)
		}
	}
}

func TestNoResponse(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	hasty := func(next rigtest.RoundTripFunc) stripe.Options {
		return stripe.Options{Key: rigtest.Key, Timeout: time.Millisecond, Transport: rigtest.RequireKey{TB: t, Next: next}}
	}
	tests := map[string]struct {
		payments stripe.Options
		want     order.ErrorKind
		cause    error // that the error wraps; nil: any
	}{
		"a refused connection": {rigtest.Options(t, closed.URL, nil), order.KindUnknown, nil},
		"an invalid base URL":  {rigtest.Options(t, "http://[::1", nil), order.KindMisconfigured, nil},
		"a broken connection": {rigtest.Serving(t, func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), order.KindUnknown, nil},
		"a truncated body": {rigtest.Serving(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, rigtest.Intent("succeeded", rigtest.Null))
		}), order.KindUnknown, nil},
		"a response that is not HTTP": {rigtest.Serving(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, `{"customer":"cus_canary"}`+"\r\n\r\n")
			_ = conn.Close()
		}), order.KindUnknown, nil},
		"a time-out before the headers": {hasty(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), order.KindUnknown, context.DeadlineExceeded},
		"a canceled call": {rigtest.Options(t, "", rigtest.RoundTripFunc(func(*http.Request) (*http.Response, error) {
			return nil, context.Canceled
		})), order.KindUnknown, context.Canceled},
		"a time-out in the body": {hasty(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: endless{r}, Request: r}, nil
		}), order.KindUnknown, context.DeadlineExceeded},
	}
	for name, tt := range tests {
		for method, call := range rigtest.Methods(t, tt.payments) {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				got, err := call(t.Context())
				if kind := rigtest.KindOf(t, err); kind != tt.want || got != (order.Intent{}) {
					t.Errorf("got %v, %v, want %s", got, err, tt.want)
				}
				if tt.cause != nil && !errors.Is(err, tt.cause) {
					t.Errorf("got %v, want it to wrap %v", err, tt.cause)
				}
				if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), rigtest.Key)) {
					t.Errorf("got %q, want no secret in it", err)
				}
			})
		}
	}
}

// endless is a body that does not arrive before its request times out.
type endless struct{ request *http.Request }

func (e endless) Read([]byte) (int, error) {
	<-e.request.Context().Done()
	return 0, e.request.Context().Err()
}

func (endless) Close() error { return nil }

func TestNoRequestIsRetriedOrRedirected(t *testing.T) {
	t.Parallel()
	for _, status := range []int{307, 308, 409, 429, 500, 503} {
		var sent atomic.Int64
		p := rigtest.Serving(t, func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			w.Header().Set("Stripe-Should-Retry", "true")
			w.Header().Set("Location", "/elsewhere")
			rigtest.Failure(status, rigtest.APIError, "").ServeHTTP(w, r)
		})
		for name, call := range rigtest.Methods(t, p) {
			sent.Store(0)
			if _, err := call(t.Context()); err == nil || sent.Load() != 1 {
				t.Errorf("%s, %d: got %d requests, error %v, want one and an error", name, status, sent.Load(), err)
			}
		}
	}
}

// A body is read to its end and closed, so that the next call finds the connection.
func TestAConnectionIsReused(t *testing.T) {
	t.Parallel()
	addresses := map[string]bool{}
	p := rigtest.Serving(t, func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		rigtest.OK(rigtest.Intent("succeeded", rigtest.Null)).ServeHTTP(w, r)
	})
	for _, call := range rigtest.Methods(t, p) {
		_, err := call(t.Context())
		rigtest.Must(t, err)
	}
	if len(addresses) != 1 {
		t.Errorf("got connections from %v, want one", addresses)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	paths := map[string]struct{ path, name string }{
		"prepare": {"/v1/payment_intents", "POST /v1/payment_intents"},
		"confirm": {"/v1/payment_intents/pi_3Pretend/confirm", "POST /v1/payment_intents/{id}/confirm"},
		"read":    {"/v1/payment_intents/pi_3Pretend", "GET /v1/payment_intents/{id}"},
	}
	for claim, tt := range map[string]struct{ base, want string }{
		"the default is Stripe":     {"", "https://api.stripe.com"},
		"a URL may end in a slash":  {"https://proxy.test/", "https://proxy.test"},
		"a proxy may have a path":   {"https://proxy.test/stripe", "https://proxy.test/stripe"},
		"a path may end in a slash": {"https://proxy.test/stripe/", "https://proxy.test/stripe"},
	} {
		var sent *http.Request
		p := stripe.Options{
			Key: rigtest.Key + "\n", BaseURL: tt.base, Scope: rigtest.Scope,
			Transport: rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
				sent = r
				return nil, errors.New("offline")
			}),
		}
		for name, call := range rigtest.Methods(t, p) {
			if _, err := call(t.Context()); rigtest.KindOf(t, err) != order.KindUnknown {
				t.Errorf("%s, %s: got %v, want %s", claim, name, err, order.KindUnknown)
			}
			got := []string{sent.URL.String(), stripe.CallName(sent), sent.Header.Get("Authorization")}
			want := []string{tt.want + paths[name].path, paths[name].name, "Bearer " + rigtest.Key}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("%s, %s (-got +want):\n%s", claim, name, diff)
			}
		}
	}
}

func TestACallWithoutATimeoutGetsTheDefault(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{
		0: stripe.DefaultTimeout, -1: stripe.DefaultTimeout, time.Hour: time.Hour,
	} {
		var left time.Duration
		p := charge.New(stripe.Options{
			Key: rigtest.Key, Timeout: timeout, Transport: rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
				deadline, _ := r.Context().Deadline()
				left = time.Until(deadline) //nolint:forbidigo // net/http sets the deadline by this clock
				return nil, http.ErrHandlerTimeout
			}),
		})
		if _, err := p.Read(t.Context(), rigtest.IntentID); rigtest.KindOf(t, err) != order.KindUnknown {
			t.Errorf("got %v, want %s", err, order.KindUnknown)
		}
		if left > want || left <= want-want/2 {
			t.Errorf("timeout %v: got %v left of a call, want almost %v", timeout, left, want)
		}
	}
}

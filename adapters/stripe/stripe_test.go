package stripe_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// TestRequests pins every byte that Stripe is sent: what is not here is not sent.
//
// If the words of prepare change, its idempotency key must change with them (order.PrepareKey needs another last part):
// Stripe refuses other words under a known key, and every order that is under way during a roll-out would be parked.
func TestRequests(t *testing.T) {
	t.Parallel()
	const common = "Accept-Encoding: gzip\nAuthorization: Bearer " + pretendKey
	const agent = "Stripe-Version: 2023-10-16\nUser-Agent: Stripe/v1 GoBindings/76.25.0\n"
	const form = "Content-Type: application/x-www-form-urlencoded\n"
	want := map[string]string{
		"prepare": "POST /v1/payment_intents\n" + common + "\nContent-Length: 324\n" + form +
			"Idempotency-Key: test/order/ORD-1/prepare\n" + agent + "\n" +
			"amount=2500&automatic_payment_methods[allow_redirects]=never&automatic_payment_methods[enabled]=true" +
			"&capture_method=automatic&currency=eur&customer=cus_pretend&metadata[fingerprint]=" +
			url.QueryEscape(string(orderOf(t, "pm_card_visa").Fingerprint())) + "&metadata[orderId]=ORD-1&metadata[scope]=test" +
			"&payment_method=pm_card_visa",
		"confirm": "POST /v1/payment_intents/pi_3Pretend/confirm\n" + common + "\nContent-Length: 16\n" + form +
			"Idempotency-Key: test/order/ORD-1/confirm/1\n" + agent + "\noff_session=true",
		"read": "GET /v1/payment_intents/pi_3Pretend\n" + common + "\n" + agent + "\n",
	}
	got := make(chan string, 1)
	p := answering(t, func(w http.ResponseWriter, r *http.Request) {
		got <- dump(r)
		said{200, false, body("succeeded", none)}.ServeHTTP(w, r)
	})
	for name, call := range calls(t, p) {
		if _, err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(<-got, "\n"), strings.Split(want[name], "\n")); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

// dump is a request in one canonical text.
func dump(r *http.Request) string {
	var text strings.Builder
	text.WriteString(r.Method + " " + r.RequestURI + "\n")
	_ = r.Header.Write(&text) // sorted
	sent, _ := io.ReadAll(r.Body)
	return strings.ReplaceAll(text.String(), "\r", "") + "\n" + string(sent)
}

func TestNothingIsSentThatMustNotBe(t *testing.T) {
	t.Parallel()
	p := open(t, "", roundTrip(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent", r.Method, r.URL)
		return nil, http.ErrAbortHandler
	}))
	o, ctx := orderOf(t, "pm_card_visa"), t.Context()
	key := order.ConfirmKey(scope, o.ID(), 1)
	tests := map[string]func() (order.Intent, error){
		"a creation without a key":         func() (order.Intent, error) { return p.Prepare(ctx, o, order.Key{}) },
		"a confirmation without a key":     func() (order.Intent, error) { return p.Confirm(ctx, intentID, order.Key{}) },
		"a confirmation of nothing":        func() (order.Intent, error) { return p.Confirm(ctx, "", key) },
		"a confirmation that climbs paths": func() (order.Intent, error) { return p.Confirm(ctx, "pi_1/cancel?", key) },
	}
	for name, call := range tests {
		if got, err := call(); kindOf(t, err) != order.Refused || got != (order.Intent{}) {
			t.Errorf("%s: got %v, %v, want it refused", name, got, err)
		}
	}
	if got, err := p.Read(ctx, ""); kindOf(t, err) != order.Misconfigured || got != (order.Intent{}) {
		t.Errorf("a list of all intents: got %v, %v, want our mistake", got, err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	impatient := func(next roundTrip) *stripe.Payments {
		return stripe.New(stripe.Options{Key: pretendKey, Timeout: time.Millisecond, Transport: keyed{t, next}})
	}
	tests := map[string]struct {
		payments *stripe.Payments
		want     order.ErrorKind
		cause    error // that callers can still tell
	}{
		"nobody is there": {open(t, gone.URL, nil), order.Unknown, nil},
		"no address":      {open(t, "http://[::1", nil), order.Misconfigured, nil},
		"no end":          {answering(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), order.Unknown, nil},
		"half a body": {answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, body("succeeded", none))
		}), order.Unknown, nil},
		"no HTTP": {answering(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, `{"customer":"cus_canary"}`+"\r\n\r\n")
			_ = conn.Close()
		}), order.Unknown, nil},
		"the time is over": {impatient(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), order.Unknown, context.DeadlineExceeded},
		"the body takes too long": {impatient(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: endless{r}, Request: r}, nil
		}), order.Unknown, context.DeadlineExceeded},
	}
	for name, tt := range tests {
		for method, call := range calls(t, tt.payments) {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				got, err := call(t.Context())
				if trouble := kindOf(t, err); trouble != tt.want || got != (order.Intent{}) || !errors.Is(err, tt.cause) && tt.cause != nil {
					t.Errorf("got %v, %v, want %s", got, err, tt.want)
				}
				if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), pretendKey)) {
					t.Errorf("%q tells secrets", err)
				}
			})
		}
	}
}

// endless is a body that does not come before its request's time is over.
type endless struct{ request *http.Request }

func (e endless) Read([]byte) (int, error) {
	<-e.request.Context().Done()
	return 0, e.request.Context().Err()
}

func (endless) Close() error { return nil }

func TestACallerThatGivesUpIsToldUnknown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := open(t, "", roundTrip(func(r *http.Request) (*http.Response, error) {
		cancel()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}))
	_, err := p.Confirm(ctx, intentID, order.ConfirmKey(scope, "ORD-1", 1))
	if kindOf(t, err) != order.Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want unknown and canceled", err)
	}
}

func TestNoRequestIsRepeatedOrRedirected(t *testing.T) {
	t.Parallel()
	for _, status := range []int{307, 308, 409, 429, 500, 503} {
		var sent atomic.Int64
		p := answering(t, func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			w.Header().Set("Stripe-Should-Retry", "true")
			w.Header().Set("Location", "/elsewhere")
			said{status, false, failure(broken)}.ServeHTTP(w, r)
		})
		for name, call := range calls(t, p) {
			sent.Store(0)
			if _, err := call(t.Context()); err == nil || sent.Load() != 1 {
				t.Errorf("%s, %d: sent %d times, error %v", name, status, sent.Load(), err)
			}
		}
	}
}

func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	const orders = 20
	arrived := make(chan struct{}, orders)
	var all sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{} // the handler goes on when all of a round are here, so each has its own connection
		all.Wait()
		said{200, false, body("succeeded", none)}.ServeHTTP(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	p := stripe.New(stripe.Options{Key: pretendKey, BaseURL: server.URL})
	for range 3 {
		var done sync.WaitGroup
		all.Add(1)
		for range orders {
			done.Go(func() {
				if _, err := p.Read(t.Context(), intentID); err != nil {
					t.Error(err)
				}
			})
		}
		for range orders {
			<-arrived
		}
		all.Done()
		done.Wait()
	}
	if got := opened.Load(); got != orders {
		t.Errorf("%d connections for three rounds of %d orders", got, orders)
	}
}

func TestTheAddressMayEndInASlashAndTheKeyInANewline(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/payment_intents/pi_3Pretend" || r.Header.Get("Authorization") != "Bearer "+pretendKey {
			t.Errorf("got %q, %q", r.URL.Path, r.Header["Authorization"])
		}
		said{200, false, body("succeeded", none)}.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := stripe.New(stripe.Options{Key: pretendKey + "\n", BaseURL: server.URL + "/", Scope: scope})
	if _, err := p.Read(t.Context(), intentID); err != nil {
		t.Error(err)
	}
}

func TestStripeIsTheDefault(t *testing.T) {
	t.Parallel()
	p := open(t, "", roundTrip(func(r *http.Request) (*http.Response, error) {
		if got := r.URL.String(); got != "https://api.stripe.com/v1/payment_intents/pi_3Pretend" {
			t.Errorf("got %s", got)
		}
		return nil, errors.New("offline")
	}))
	if _, err := p.Read(t.Context(), intentID); kindOf(t, err) != order.Unknown {
		t.Error(err)
	}
}

func TestCallNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"prepare": "POST /v1/payment_intents",
		"confirm": "POST /v1/payment_intents/{id}/confirm",
		"read":    "GET /v1/payment_intents/{id}",
	}
	for name, want := range names {
		p := open(t, "https://proxy.test/stripe", roundTrip(func(r *http.Request) (*http.Response, error) {
			if got := stripe.CallName(r); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			return nil, errors.New("offline")
		}))
		_, _ = calls(t, p)[name](t.Context())
	}
}

package stripetest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/stripe/stripetest"
)

// site is a server and a client with kept-alive connections.
type site struct {
	*stripetest.Server
	tb     testing.TB
	client *http.Client
}

func serve(tb testing.TB, options stripetest.Options) *site {
	tb.Helper()
	server, err := stripetest.Serve(options)
	must(tb, err)
	transport := &http.Transport{}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &site{Server: server, tb: tb, client: &http.Client{Transport: transport}}
}

// httpResponse is a complete response.
type httpResponse struct {
	status int
	header http.Header
	body   string
}

// send sends one request. A truncated body is an error.
func (s *site) send(method, path, key, form string) (httpResponse, error) {
	r, err := http.NewRequestWithContext(s.tb.Context(), method, s.URL+path, strings.NewReader(form))
	if err != nil {
		return httpResponse{}, err
	}
	r.Header.Set("Authorization", "Bearer sk_test_pretend")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := s.client.Do(r)
	if err != nil {
		return httpResponse{}, err
	}
	body, err := io.ReadAll(res.Body)
	return httpResponse{res.StatusCode, res.Header, string(body)}, errors.Join(err, res.Body.Close())
}

// create creates an intent under a key, and confirm confirms the first one.
func (s *site) create(key string) httpResponse {
	s.tb.Helper()
	res, err := s.send("POST", root, key, creation("pm_card_visa"))
	must(s.tb, err)
	return res
}

func (s *site) confirm(key string) httpResponse {
	s.tb.Helper()
	res, err := s.send("POST", confirmFirst, key, offSession)
	must(s.tb, err)
	return res
}

// charges returns the successful charges of the order.
func (s *site) charges() (charges int) {
	s.Machine(func(m *stripetest.Machine) { charges = len(m.Charges("ORD1")) })
	return charges
}

const (
	confirmFirst = root + "/pi_000001/confirm"
	offSession   = "off_session=true"
)

func TestHTTPResponses(t *testing.T) {
	t.Parallel()
	s := serve(t, stripetest.Options{Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	first := s.create("k")
	var got map[string]any
	must(t, json.Unmarshal([]byte(first.body), &got))
	want := map[string]any{
		"id": "pi_000001", "object": "payment_intent", "livemode": false, "created": 1.7e9, "amount": 1999.0, "amount_received": 0.0,
		"currency": "usd", "capture_method": "automatic", "client_secret": "pi_000001_secret_pretend", "status": "requires_confirmation",
		"metadata": map[string]any{"orderId": "ORD1", "scope": "test"}, "customer": "cus_1", "payment_method": "pm_card_visa",
		"latest_charge": nil, "description": nil, "cancellation_reason": nil, "last_payment_error": nil, "next_action": nil,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("intent (-got +want):\n%s", diff)
	}
	s.Advance(time.Hour)
	again := s.create("k")
	for name, want := range map[string]string{
		"Request-Id": "req_000002", "Original-Request": "req_000001", "Idempotent-Replayed": "true", "Idempotency-Key": "k",
		"Content-Type": "application/json", "Stripe-Version": "2023-10-16", "Date": "Tue, 14 Nov 2023 23:13:20 GMT",
	} {
		if got := again.header.Get(name); got != want {
			t.Errorf("header %s of a replay: got %q, want %q", name, got, want)
		}
	}
	s.Advance(23 * time.Hour)
	if again.body != first.body || !strings.Contains(s.create("k").body, `"id":"pi_000002"`) {
		t.Errorf("body of a replay: got %s, want %s, and a new intent after a day", again.body, first.body)
	}
}

// The second request of each case goes over a kept-alive connection, on which Go's
// transport would repeat it by itself if the connection ended without a byte.
func TestHTTPConnectionFaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[stripetest.FaultKind]int{stripetest.LoseRequest: 0, stripetest.LoseResponse: 1} {
		s := serve(t, stripetest.Options{})
		s.create("")
		s.Fail(stripetest.Fault{Kind: kind})
		if got, err := s.send("POST", confirmFirst, "k", offSession); err == nil {
			t.Errorf("%s: got %+v, want a broken connection", kind, got)
		}
		if got := s.Count(stripetest.Confirm); got != 1 || s.charges() != want {
			t.Errorf("%s: got %d confirmations and %d charges, want 1 and %d", kind, got, s.charges(), want)
		}
	}
	s := serve(t, stripetest.Options{})
	s.Fail(stripetest.Fault{Kind: stripetest.Garbage})
	if got := s.create(""); got.status != 200 || json.Valid([]byte(got.body)) {
		t.Errorf("got %+v, want status 200 and invalid JSON", got)
	}
}

// The server waits outside its lock, so a slow call really holds its key and its intent
// while others come in.
func TestHTTPConcurrentRequests(t *testing.T) {
	t.Parallel()
	for kind, charges := range map[stripetest.FaultKind]int{stripetest.Latency: 0, stripetest.SlowSuccess: 1} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := serve(t, stripetest.Options{})
			s.create("")
			s.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, Delay: time.Hour})
			var slow sync.WaitGroup
			slow.Go(func() {
				if got, err := s.send("POST", confirmFirst, "k", offSession); err == nil {
					t.Errorf("got %+v an hour early, want a broken connection", got)
				}
			})
			for locked := false; !locked; runtime.Gosched() {
				s.Machine(func(m *stripetest.Machine) {
					locked = errors.Is(m.Settle(s.Now(), "pi_000001", true), stripetest.ErrLocked)
				})
			}
			if got := s.charges(); got != charges {
				t.Errorf("got %d charges, want %d", got, charges)
			}
			for key, want := range map[string]string{"k": "409 idempotency_key_in_use", "other": "429 lock_timeout"} {
				got := s.confirm(key)
				status, code, _ := strings.Cut(want, " ")
				if fmt.Sprint(got.status) != status || !strings.Contains(got.body, code) ||
					got.header.Get("Stripe-Should-Retry") != "true" {
					t.Errorf("key %q: got %+v, want %s", key, got, want)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			slow.Wait()
			if got := s.charges(); got != 1 {
				t.Errorf("got %d charges, want 1", got)
			}
		})
	}
}

// A hook sees each call before and after it, with the result of its response.
func TestHTTPHooks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []stripetest.Call
	see := func(c stripetest.Call) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, c)
	}
	s := serve(t, stripetest.Options{Before: see, After: see})
	s.create("p")
	s.Fail(stripetest.Fault{Kind: stripetest.LoseResponse, Number: 2})
	s.Fail(stripetest.Fault{Kind: stripetest.RateLimited, Number: 4})
	_, _ = s.send("POST", confirmFirst, "c", offSession) // lost
	s.confirm("c")
	s.confirm("d")
	_, err := s.send("GET", root, "", "")
	must(t, err)
	prepare := stripetest.Call{
		Number: 1, Method: "POST", Path: root, Endpoint: stripetest.Create, OrderID: "ORD1", Key: "p",
	}
	confirm := func(number int, key string) stripetest.Call {
		return stripetest.Call{
			Number: number, Method: "POST", Path: confirmFirst, Endpoint: stripetest.Confirm, Intent: "pi_000001",
			OrderID: "ORD1", Key: key,
		}
	}
	list := stripetest.Call{Number: 5, Method: "GET", Path: root, Endpoint: stripetest.List}
	done := func(c stripetest.Call, status int, result string, replayed, lost bool) stripetest.Call {
		c.Status, c.Result, c.Replayed, c.Lost = status, result, replayed, lost
		c.Request = stripetest.RequestID(c.Number)
		return c
	}
	created := done(prepare, 200, "requires_confirmation", false, false)
	created.Intent = "pi_000001"
	want := []stripetest.Call{
		prepare, created,
		confirm(2, "c"), done(confirm(2, "c"), 200, "succeeded", false, true),
		confirm(3, "c"), done(confirm(3, "c"), 200, "succeeded", true, false),
		confirm(4, "d"), done(confirm(4, "d"), 429, "rate_limit", false, false),
		list, done(list, 200, "", false, false),
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(seen, want, cmpopts.IgnoreFields(stripetest.Call{}, "At")); diff != "" {
		t.Errorf("hooks saw (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(s.Calls(), []stripetest.Call{seen[1], seen[3], seen[5], seen[7], seen[9]}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

// docs.stripe.com/api/versioning: the version is the header's. A live key is refused as a
// user too.
func TestHTTPRequestHeaders(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, serve(t, stripetest.Options{}).URL+root, nil)
	must(t, err)
	r.SetBasicAuth("sk_live_pretend", "")
	r.Header.Set("Stripe-Version", "2026-01-28.clover")
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	must(t, res.Body.Close())
	if got := res.Header.Get("Stripe-Version"); res.StatusCode != 401 || got != "2026-01-28.clover" {
		t.Errorf("got %d and version %s, want 401 and that of the request", res.StatusCode, got)
	}
}

func TestHTTPRace(t *testing.T) {
	t.Parallel()
	s := serve(t, stripetest.Options{})
	s.create("")
	var group sync.WaitGroup
	for client := range 50 {
		group.Go(func() {
			if _, err := s.send("POST", confirmFirst, fmt.Sprintf("k%d", client%25), offSession); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := s.charges(); got != 1 {
		t.Errorf("got %d charges, want 1", got)
	}
}

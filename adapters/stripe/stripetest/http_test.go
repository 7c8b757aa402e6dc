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

func (s *site) mustSend(method, path, key, form string) httpResponse {
	s.tb.Helper()
	res, err := s.send(method, path, key, form)
	must(s.tb, err)
	return res
}

// create creates an intent under a key, and confirm confirms the first one.
func (s *site) create(key string) httpResponse {
	s.tb.Helper()
	return s.mustSend("POST", root, key, creation("pm_card_visa"))
}

func (s *site) confirm(key string) httpResponse {
	s.tb.Helper()
	return s.mustSend("POST", confirmFirst, key, offSession)
}

// charges returns the successful charges of the order.
func (s *site) charges() (charges []stripetest.Charge) {
	s.Machine(func(m *stripetest.Machine) { charges = m.Charges("ORD1") })
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

	again := s.create("k")
	for name, want := range map[string]string{
		"Request-Id": "req_000002", "Original-Request": "req_000001", "Idempotent-Replayed": "true", "Idempotency-Key": "k",
		"Content-Type": "application/json",
	} {
		if got := again.header.Get(name); got != want {
			t.Errorf("header %s of a replay: got %q, want %q", name, got, want)
		}
	}
	if again.body != first.body {
		t.Errorf("body of a replay: got %s, want %s", again.body, first.body)
	}

	s.confirm("c")
	refused := s.confirm("c2")
	if refused.status != 400 || refused.header.Get("Stripe-Should-Retry") != "false" ||
		!strings.Contains(refused.body, `"amount_received":1999`) {
		t.Errorf("a second confirmation: got %+v, want a 400 with the paid intent", refused)
	}
	list := s.mustSend("GET", root+"?customer=cus_1&limit=1", "", "")
	if !strings.Contains(list.body, `"has_more":false,"data":[{"id":"pi_000001"`) {
		t.Errorf("list: got %+v, want the intent", list)
	}
	if got := s.charges(); len(got) != 1 {
		t.Errorf("got charges %v, want 1", got)
	}
}

func TestHTTPClock(t *testing.T) {
	t.Parallel()
	s := serve(t, stripetest.Options{Now: func() time.Time { return time.Unix(0, 0) }})
	s.create("k")
	s.Advance(24 * time.Hour)
	got := s.create("k")
	if got.header.Get("Idempotent-Replayed") != "" || !strings.Contains(got.body, `"id":"pi_000002"`) {
		t.Errorf("an expired key: got %+v, want a new intent", got)
	}
	if got := s.Now(); !got.Equal(time.Unix(86_400, 0)) {
		t.Errorf("now: got %v, want a day after the start", got)
	}
}

// The second request of each case goes over a kept-alive connection, on which Go's
// transport would repeat it by itself if the connection ended without a byte.
func TestHTTPConnectionFaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[stripetest.FaultKind]int{stripetest.LoseRequest: 0, stripetest.LoseResponse: 1} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := serve(t, stripetest.Options{})
			s.create("")
			s.Fail(stripetest.Fault{Kind: kind})
			if got, err := s.send("POST", confirmFirst, "k", offSession); err == nil {
				t.Errorf("got %+v, want a broken connection", got)
			}
			if got := s.Count(stripetest.Confirm); got != 1 {
				t.Errorf("got %d confirmations, want 1", got)
			}
			if got := s.charges(); len(got) != want {
				t.Errorf("got charges %v, want %d", got, want)
			}
		})
	}

	t.Run("Garbage is status 200 and invalid JSON", func(t *testing.T) {
		t.Parallel()
		s := serve(t, stripetest.Options{})
		s.Fail(stripetest.Fault{Kind: stripetest.Garbage})
		if got := s.create(""); got.status != 200 || json.Valid([]byte(got.body)) {
			t.Errorf("got %+v, want status 200 and invalid JSON", got)
		}
	})
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
			for !s.locked("pi_000001") {
				runtime.Gosched()
			}
			if got := s.charges(); len(got) != charges {
				t.Errorf("got charges %v, want %d", got, charges)
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
			if got := s.charges(); len(got) != 1 {
				t.Errorf("got charges %v, want 1", got)
			}
		})
	}
}

// locked reports whether a request executes on an intent.
func (s *site) locked(id string) (locked bool) {
	s.Machine(func(m *stripetest.Machine) {
		locked = errors.Is(m.Settle(s.Now(), id, true), stripetest.ErrLocked)
	})
	return locked
}

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
	s.confirm("c")
	s.confirm("c")
	prepare := stripetest.Call{
		Number: 1, Method: "POST", Path: root, Endpoint: stripetest.Create, OrderID: "ORD1", Key: "p",
	}
	confirm := stripetest.Call{
		Method: "POST", Path: confirmFirst, Endpoint: stripetest.Confirm, Intent: "pi_000001", OrderID: "ORD1", Key: "c",
	}
	confirm.Number = 2
	again := confirm
	again.Number = 3
	done := func(c stripetest.Call, number stripetest.RequestID, result string, replayed bool) stripetest.Call {
		c.Intent, c.Status, c.Result, c.Request, c.Replayed = "pi_000001", 200, result, number, replayed
		return c
	}
	want := []stripetest.Call{
		prepare, done(prepare, 1, "requires_confirmation", false),
		confirm, done(confirm, 2, "succeeded", false),
		again, done(again, 3, "succeeded", true),
	}
	ignoreTime := cmpopts.IgnoreFields(stripetest.Call{}, "At")
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(seen, want, ignoreTime); diff != "" {
		t.Errorf("hooks saw (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(s.Calls(), []stripetest.Call{want[1], want[3], want[5]}, ignoreTime); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

func TestACallHasTheResultOfItsResponse(t *testing.T) {
	t.Parallel()
	read, refunds := root+"/pi_000001", "/v1/refunds"
	for claim, tt := range map[string]struct {
		method, path, form string
		fault              stripetest.FaultKind // "" for none
		want               stripetest.Call
	}{
		"the status of the intent": {"GET", read, "", "", stripetest.Call{Status: 200, Result: "succeeded"}},
		"the status of the refund": {
			"POST", refunds, "payment_intent=pi_000001", "", stripetest.Call{Status: 200, Result: "succeeded"},
		},
		"a status that was lost": {
			"GET", read, "", stripetest.LoseResponse, stripetest.Call{Status: 200, Result: "succeeded", Lost: true},
		},
		"the code of the error": {"GET", read, "", stripetest.RateLimited, stripetest.Call{Status: 429, Result: "rate_limit"}},
		"a decline": {
			"POST", root, creation("pm_card_visa") + "&confirm=true", stripetest.Decline,
			stripetest.Call{Status: 402, Result: "card_declined"},
		},
		"the type without a code":     {"GET", read, "", stripetest.Unavailable, stripetest.Call{Status: 503, Result: "api_error"}},
		"none for a list":             {"GET", root, "", "", stripetest.Call{Status: 200}},
		"none for a request was lost": {"GET", read, "", stripetest.LoseRequest, stripetest.Call{Lost: true}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			seen := make(chan stripetest.Call, 3)
			s := serve(t, stripetest.Options{After: func(c stripetest.Call) { seen <- c }})
			s.create("p")
			s.confirm("c")
			<-seen
			<-seen
			if tt.fault != "" {
				s.Fail(stripetest.Fault{Kind: tt.fault})
			}
			_, _ = s.send(tt.method, tt.path, "", tt.form) // After has the result
			got := <-seen
			if diff := cmp.Diff(tt.want, stripetest.Call{Status: got.Status, Result: got.Result, Lost: got.Lost}); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", got.Method, got.Path, diff)
			}
		})
	}
}

// A hook arms a fault for the call that it sees. That call is replayed and has no
// execution, and the next one must not have it instead.
func TestHTTPFaultsOfOneCall(t *testing.T) {
	t.Parallel()
	var s *site
	ready := make(chan struct{})
	s = serve(t, stripetest.Options{Before: func(c stripetest.Call) {
		<-ready
		if c.Number == 3 {
			s.Fail(stripetest.Fault{Number: c.Number, Kind: stripetest.ServerErrorAfterEffect})
			s.Fail(stripetest.Fault{Number: c.Number + 1, Kind: stripetest.RateLimited})
		}
	}})
	close(ready)
	s.create("p")
	s.confirm("c")
	if got := s.confirm("c"); got.status != 200 || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %+v, want the first response again", got)
	}
	if got := s.mustSend("GET", root+"/pi_000001", "", ""); got.status != 429 {
		t.Errorf("got %+v, want 429, the fault of this call", got)
	}
	if got := s.create("q"); got.status != 200 {
		t.Errorf("the call after the fault: got %+v, want 200", got)
	}
}

// docs.stripe.com/api/versioning: the version is the header's, or the account's own.
func TestHTTPRequestHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, stripetest.Options{})
	for claim, tt := range map[string]struct {
		user, version string
		status        int
		want          string
	}{
		"the default version":  {"sk_test_pretend", "", 200, "2023-10-16"},
		"another version":      {"sk_test_pretend", "2026-01-28.clover", 200, "2026-01-28.clover"},
		"a live key as a user": {"sk_live_pretend", "", 401, "2023-10-16"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+root, nil)
		must(t, err)
		r.SetBasicAuth(tt.user, "")
		if tt.version != "" {
			r.Header.Set("Stripe-Version", tt.version)
		}
		res, err := s.client.Do(r)
		must(t, err)
		_ = res.Body.Close()
		if got := res.Header.Get("Stripe-Version"); res.StatusCode != tt.status || got != tt.want {
			t.Errorf("%s: got %d, version %q, want %d, %q", claim, res.StatusCode, got, tt.status, tt.want)
		}
	}
}

func TestAPortServesOneDouble(t *testing.T) {
	t.Parallel()
	var port int
	if _, err := fmt.Sscanf(serve(t, stripetest.Options{}).URL, "http://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	if second, err := stripetest.Serve(stripetest.Options{Port: port}); err == nil {
		_ = second.Close()
		t.Error("a second server on the port: got no error, want one")
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
	if got := s.charges(); len(got) != 1 {
		t.Errorf("got charges %v, want 1", got)
	}
}

package stripetest_test

import (
	"encoding/json"
	"errors"
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

// answered is a response, and its body.
type answered struct {
	status, retry string
	body          string
}

// post sends one request.
func (s *site) post(path, key, form string) (answered, error) {
	r, err := http.NewRequestWithContext(s.tb.Context(), http.MethodPost, s.URL+path, strings.NewReader(form))
	must(s.tb, err)
	r.SetBasicAuth("sk_test_pretend", "") // as curl --user does
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", key)
	res, err := s.client.Do(r)
	if err != nil {
		return answered{}, err
	}
	body, err := io.ReadAll(res.Body)
	got := answered{res.Status[:3], res.Header.Get("Stripe-Should-Retry"), string(body)}
	return got, errors.Join(err, res.Body.Close())
}

func (s *site) create() string {
	s.tb.Helper()
	got, err := s.post(root, "p", creation("pm_card_visa"))
	must(s.tb, err)
	return got.body
}

func (s *site) confirm(key string) (answered, error) {
	return s.post(root+"/pi_000001/confirm", key, "off_session=true")
}

// charges returns the number of successful charges of the order.
func (s *site) charges() (charges int) {
	s.Machine(func(m *stripetest.Machine) { charges = len(m.Charges("ORD1")) })
	return charges
}

// The second request of each case goes over a kept-alive connection, on which Go's
// transport would repeat it by itself if the connection ended without a byte.
func TestHTTPConnectionFaults(t *testing.T) {
	for kind, want := range map[stripetest.FaultKind]int{stripetest.LoseRequest: 0, stripetest.LoseResponse: 1} {
		s := serve(t, stripetest.Options{})
		s.create()
		s.Fail(stripetest.Fault{Kind: kind})
		if got, err := s.confirm("k"); err == nil {
			t.Errorf("%s: got %+v, want a broken connection", kind, got)
		}
		if got := s.Count(stripetest.Confirm); got != 1 || s.charges() != want {
			t.Errorf("%s: got %d confirmations and %d charges, want 1 and %d", kind, got, s.charges(), want)
		}
	}
	s := serve(t, stripetest.Options{})
	s.Fail(stripetest.Fault{Kind: stripetest.Garbage})
	if got := s.create(); json.Valid([]byte(got)) {
		t.Errorf("got %s, want half of it", got)
	}
}

// The server waits outside its lock, so a slow call really holds its key and its intent
// while others come in (docs.stripe.com/error-codes: idempotency_key_in_use;
// docs.stripe.com/rate-limits: object lock timeouts).
func TestHTTPConcurrentRequests(t *testing.T) {
	for kind, charges := range map[stripetest.FaultKind]int{stripetest.Latency: 0, stripetest.SlowSuccess: 1} {
		t.Run(string(kind), func(t *testing.T) {
			s := serve(t, stripetest.Options{})
			s.create()
			s.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, Delay: time.Hour})
			var slow sync.WaitGroup
			slow.Go(func() {
				if got, err := s.confirm("k"); err == nil {
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
				got, err := s.confirm(key)
				must(t, err)
				status, code, _ := strings.Cut(want, " ")
				if got.status != status || !strings.Contains(got.body, code) || got.retry != "true" {
					t.Errorf("key %q: got %+v, want %s", key, got, want)
				}
			}
			must(t, s.Close())
			slow.Wait()
			if got := s.charges(); got != 1 {
				t.Errorf("got %d charges, want 1", got)
			}
		})
	}
}

// A hook sees each call before and after it, with the result of its response.
func TestHTTPHooks(t *testing.T) {
	var mu sync.Mutex
	var seen []stripetest.Call
	see := func(c stripetest.Call) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, c)
	}
	s := serve(t, stripetest.Options{Before: see, After: see})
	s.create()
	s.Fail(stripetest.Fault{Kind: stripetest.LoseResponse, Number: 2})
	s.Fail(stripetest.Fault{Kind: stripetest.RateLimited, Number: 4})
	for _, key := range []string{"c", "c", "d"} { // the first response is lost
		_, _ = s.confirm(key)
	}
	prepare := stripetest.Call{
		Number: 1, Method: "POST", Path: root, Endpoint: stripetest.Create, OrderID: "ORD1", Key: "p",
	}
	confirm := func(number int, key string) stripetest.Call {
		return stripetest.Call{
			Number: number, Method: "POST", Path: root + "/pi_000001/confirm", Endpoint: stripetest.Confirm, Intent: "pi_000001",
			OrderID: "ORD1", Key: key,
		}
	}
	done := func(c stripetest.Call, status int, result string, replayed, lost bool) stripetest.Call {
		c.Status, c.Result, c.Replayed, c.Lost = status, result, replayed, lost
		c.Intent, c.Request = "pi_000001", stripetest.RequestID(c.Number)
		return c
	}
	want := []stripetest.Call{
		prepare, done(prepare, 200, "requires_confirmation", false, false),
		confirm(2, "c"), done(confirm(2, "c"), 200, "succeeded", false, true),
		confirm(3, "c"), done(confirm(3, "c"), 200, "succeeded", true, false),
		confirm(4, "d"), done(confirm(4, "d"), 429, "rate_limit", false, false),
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(seen, want, cmpopts.IgnoreFields(stripetest.Call{}, "At")); diff != "" {
		t.Errorf("hooks saw (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(s.Calls(), []stripetest.Call{seen[1], seen[3], seen[5], seen[7]}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

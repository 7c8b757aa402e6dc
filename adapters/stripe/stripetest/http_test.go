package stripetest_test

import (
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

	"orderonce/adapters/stripe/stripetest"
)

// site is a server and a client with kept-alive connections.
type site struct {
	*stripetest.Server
	tb     testing.TB
	client *http.Client
}

// serve starts a server with an intent that can be confirmed.
func serve(tb testing.TB, options stripetest.Options) *site {
	tb.Helper()
	server, err := stripetest.Serve(options)
	must(tb, err)
	s := &site{server, tb, &http.Client{Transport: &http.Transport{}}}
	tb.Cleanup(func() {
		s.client.CloseIdleConnections()
		must(tb, server.Close())
	})
	_, err = s.post(root, "p", creation("pm_card_visa"))
	must(tb, err)
	return s
}

// post sends one request, and returns the status of the response, whether it may be sent
// again, and the body.
func (s *site) post(path, key, form string) (string, error) {
	r, err := http.NewRequestWithContext(s.tb.Context(), http.MethodPost, s.URL+path, strings.NewReader(form))
	must(s.tb, err)
	r.SetBasicAuth("sk_test_pretend", "") // as curl --user does
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", key)
	res, err := s.client.Do(r)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(res.Body)
	return res.Status[:3] + " " + res.Header.Get("Stripe-Should-Retry") + " " + string(body), errors.Join(err, res.Body.Close())
}

func (s *site) confirm(key string) (string, error) {
	return s.post(root+"/pi_000001/confirm", key, "off_session=true")
}

func (s *site) charges() (charges int) {
	s.Machine(func(m *stripetest.Machine) { charges = len(m.Charges("ORD1")) })
	return charges
}

// That a lost request or response breaks the connection, and is not repeated by Go's
// transport, is part of the contract of payments in adapters/stripe/charge.
func TestAGarbledResponseIsHalfOfIt(t *testing.T) {
	s := serve(t, stripetest.Options{})
	s.Fail(stripetest.Fault{Kind: stripetest.Garbage})
	if got, err := s.confirm("k"); err != nil || strings.HasSuffix(got, "}") {
		t.Errorf("got %s, %v, want half of it", got, err)
	}
}

// The server waits outside its lock, so a slow call really holds its key and its intent
// while others come in (docs.stripe.com/error-codes: idempotency_key_in_use;
// docs.stripe.com/rate-limits: object lock timeouts).
func TestHTTPConcurrentRequests(t *testing.T) {
	for kind, charges := range map[stripetest.FaultKind]int{stripetest.Latency: 0, stripetest.SlowSuccess: 1} {
		t.Run(string(kind), func(t *testing.T) {
			s := serve(t, stripetest.Options{})
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
			for key, want := range map[string]string{"k": "409 true", "other": "429 true"} {
				if got, err := s.confirm(key); err != nil || !strings.HasPrefix(got, want) {
					t.Errorf("key %q: got %s, %v, want %s", key, got, err, want)
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
	s.Fail(stripetest.Fault{Kind: stripetest.LoseResponse, Number: 2})
	s.Fail(stripetest.Fault{Kind: stripetest.RateLimited, Number: 4})
	for _, key := range []string{"c", "c", "d"} { // the first response is lost
		_, _ = s.confirm(key)
	}
	mu.Lock()
	defer mu.Unlock()
	var got []string
	for _, c := range seen {
		got = append(got, fmt.Sprint(c.Number, c.Method, c.Path, " ", c.Endpoint, " ", c.Intent, " ", c.OrderID, " ", c.Key, " ",
			c.Status, c.Result, " ", c.Request, c.Replayed, c.Lost))
	}
	const create = "1POST/v1/payment_intents create"
	confirm := func(n int, key string) string {
		return fmt.Sprint(n, "POST/v1/payment_intents/pi_000001/confirm confirm pi_000001 ORD1 ", key, " ")
	}
	want := []string{
		create + "  ORD1 p 0 req_000000 false false", create + " pi_000001 ORD1 p 200requires_confirmation req_000001 false false",
		confirm(2, "c") + "0 req_000000 false false", confirm(2, "c") + "200succeeded req_000002 false true",
		confirm(3, "c") + "0 req_000000 false false", confirm(3, "c") + "200succeeded req_000003 true false",
		confirm(4, "d") + "0 req_000000 false false", confirm(4, "d") + "429rate_limit req_000004 false false",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("hooks saw (-got +want):\n%s", diff)
	}
	if got := s.Arrived(); got != 4 {
		t.Errorf("got %d requests, want 4", got)
	}
}

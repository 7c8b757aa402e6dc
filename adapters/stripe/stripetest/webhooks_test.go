package stripetest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v76/webhook"

	"orderonce/adapters/stripe/stripetest"
)

// endpoint is a webhook endpoint that verifies signatures with Stripe's library.
type endpoint struct {
	*httptest.Server

	mu     sync.Mutex
	types  []string
	status []int // of the first responses; then 200
}

func newEndpoint(t *testing.T, status ...int) *endpoint {
	t.Helper()
	e := &endpoint{status: status}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		event, err := webhook.ConstructEventWithOptions(
			body, r.Header.Get("Stripe-Signature"), "whsec_pretend", webhook.ConstructEventOptions{IgnoreTolerance: true},
		)
		if err != nil {
			t.Errorf("verify %s: %v", body, err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.types = append(e.types, string(event.Type))
		if len(e.status) > 0 {
			w.WriteHeader(e.status[0])
			e.status = e.status[1:]
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) received() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.types)
}

// stripeWithWebhooks is a server that sends its events.
type stripeWithWebhooks struct {
	*stripetest.Server

	hooks    *stripetest.Webhooks
	observed <-chan stripetest.Sent
	t        *testing.T
}

func sendWebhooks(
	t *testing.T, deliveries func(stripetest.Event) []time.Duration, to ...*endpoint,
) stripeWithWebhooks {
	t.Helper()
	server, err := stripetest.Serve(stripetest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	observed := make(chan stripetest.Sent, 99)
	w := &stripetest.Webhooks{
		Server: server, Deliveries: deliveries, Observe: func(sent stripetest.Sent) { observed <- sent },
	}
	for _, e := range to {
		w.Endpoints = append(w.Endpoints, stripetest.WebhookEndpoint{
			URL: e.URL, Secrets: []string{"whsec_rolled", "whsec_pretend"},
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		stop()
		run.Wait()
		_ = server.Close()
	})
	return stripeWithWebhooks{server, w, observed, t}
}

// wait returns when every event that is due was sent.
func (s stripeWithWebhooks) wait() {
	for !s.hooks.Idle() {
		time.Sleep(time.Millisecond) //nolint:forbidigo // requests take real time
	}
}

// confirm creates and confirms an intent, and returns its id.
func (s stripeWithWebhooks) confirm(method string) (id string) {
	s.Machine(func(m *stripetest.Machine) {
		w := &world{Machine: m, t: s.t, now: s.Now()}
		id = w.create(method)
		w.confirm(id, id)
	})
	return id
}

func TestEachChangeOfAnIntentIsAnEvent(t *testing.T) {
	t.Parallel()
	settle := func(ok bool) func(*stripetest.Machine, string) error {
		return func(m *stripetest.Machine, id string) error { return m.Settle(time.Unix(0, 0), id, ok) }
	}
	const processing = "payment_intent.processing"
	for claim, tt := range map[string]struct {
		method string
		then   func(*stripetest.Machine, string) error
		want   []string
	}{
		"paid":                   {"pm_card_visa", nil, []string{"payment_intent.succeeded"}},
		"declined":               {"pm_card_visa_chargeDeclined", nil, []string{"payment_intent.payment_failed"}},
		"pending, then paid":     {"pm_usBankAccount_processing", settle(true), []string{processing, "payment_intent.succeeded"}},
		"pending, then declined": {"pm_usBankAccount_processing", settle(false), []string{processing, "payment_intent.payment_failed"}},
		"declined, edited and canceled": {"pm_card_visa_chargeDeclined", func(m *stripetest.Machine, id string) error {
			if err := m.EditInDashboard(time.Time{}, id); err != nil {
				return err
			}
			return m.CancelInDashboard(time.Time{}, id)
		}, []string{"payment_intent.payment_failed", "payment_intent.canceled"}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			s := sendWebhooks(t, nil, e)
			id := s.confirm(tt.method)
			s.wait()
			s.Machine(func(m *stripetest.Machine) {
				if tt.then != nil {
					if err := tt.then(m, id); err != nil {
						t.Error(err)
					}
				}
			})
			s.wait()
			if diff := cmp.Diff(e.received(), tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestEachRequestToAnEndpointIsObserved(t *testing.T) {
	t.Parallel()
	s := sendWebhooks(t, nil, newEndpoint(t, 500))
	s.confirm("pm_card_visa")
	s.wait()
	s.Advance(time.Hour)
	s.wait()
	want := s.hooks.Sent()
	if len(want) != 2 || len(s.observed) != 2 {
		t.Fatalf("sent %d requests, observed %d, want 2: the refused one and its retry", len(want), len(s.observed))
	}
	if diff := cmp.Diff(want, []stripetest.Sent{<-s.observed, <-s.observed}); diff != "" {
		t.Errorf("(-sent +observed):\n%s", diff)
	}
}

func TestAnEventIsSentAgainUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	failing, other := newEndpoint(t, 500, 400, 302), newEndpoint(t)
	s := sendWebhooks(t, nil, failing, other)
	s.confirm("pm_card_visa")
	s.wait()
	for range 4 {
		s.Advance(time.Hour)
		s.wait()
	}
	const paid = "payment_intent.succeeded"
	if diff := cmp.Diff(failing.received(), []string{paid, paid, paid, paid}); diff != "" {
		t.Errorf("the failing endpoint (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(other.received(), []string{paid}); diff != "" {
		t.Errorf("the other endpoint (-got +want):\n%s", diff)
	}
	var status []int
	for _, sent := range s.hooks.Sent() {
		if sent.URL == failing.URL {
			status = append(status, sent.Status)
		}
	}
	if diff := cmp.Diff(status, []int{500, 400, 302, 200}); diff != "" {
		t.Errorf("status (-got +want):\n%s", diff)
	}
}

func TestAnEventIsNotSentForEver(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, slices.Repeat([]int{503}, 100)...)
	s := sendWebhooks(t, nil, e)
	s.confirm("pm_card_visa")
	for range 10 {
		s.wait()
		s.Advance(24 * time.Hour)
	}
	s.wait()
	if n := len(e.received()); n != 4 {
		t.Errorf("got %d deliveries in ten days, want one a day for three days after the first", n)
	}
}

func TestAnEventWithoutDeliveriesIsLost(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s := sendWebhooks(t, func(event stripetest.Event) []time.Duration {
		if event.Number == 1 {
			return nil
		}
		return []time.Duration{0}
	}, e)
	s.confirm("pm_card_visa")
	s.confirm("pm_card_chargeDeclined")
	s.wait()
	s.Advance(96 * time.Hour)
	s.wait()
	if diff := cmp.Diff(e.received(), []string{"payment_intent.payment_failed"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestDeliveriesAreTwiceLateAndOutOfOrder(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s := sendWebhooks(t, func(event stripetest.Event) []time.Duration {
		if event.Type == "payment_intent.processing" {
			return []time.Duration{72 * time.Hour}
		}
		return []time.Duration{0, time.Hour}
	}, e)
	id := s.confirm("pm_usBankAccount_processing")
	s.Machine(func(m *stripetest.Machine) {
		if err := m.Settle(s.Now(), id, true); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		s.wait()
		s.Advance(25 * time.Hour)
	}
	s.wait()
	want := []string{"payment_intent.succeeded", "payment_intent.succeeded", "payment_intent.processing"}
	if diff := cmp.Diff(e.received(), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

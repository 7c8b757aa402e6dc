package stripetest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"orderonce/adapters/stripe/stripetest"
)

// The endpoint verifies signatures with Stripe's library.
func TestWebhooks(t *testing.T) {
	const paid, declined = "pm_card_visa", "pm_card_chargeDeclined"
	for claim, tt := range map[string]struct {
		deliveries func(stripetest.Event) []time.Duration
		responses  []int // the first ones of the endpoint; then 200
		payments   []string
		step       time.Duration // of ten
		want       string
	}{
		"an event is sent again until it is accepted": {
			nil, []int{500, 400, 302}, []string{paid}, time.Hour, "succeeded succeeded succeeded succeeded",
		},
		// docs.stripe.com/webhooks: for three days.
		"an event is not sent for ever": {
			nil, slices.Repeat([]int{503}, 100), []string{paid}, 24 * time.Hour, "succeeded succeeded succeeded succeeded",
		},
		"an event without deliveries is lost": {func(e stripetest.Event) []time.Duration {
			return []time.Duration{0}[min(e.Number-1, 1):]
		}, nil, []string{paid, declined}, time.Hour, "succeeded"},
		"an event may come twice, late and out of order": {func(e stripetest.Event) []time.Duration {
			return [][]time.Duration{{25 * time.Hour}, {0, time.Hour}}[e.Number-1]
		}, nil, []string{paid, declined}, 5 * time.Hour, "payment_failed payment_failed succeeded"},
	} {
		t.Run(claim, func(t *testing.T) {
			var mu sync.Mutex
			var received []string
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				event, err := webhook.ConstructEventWithOptions(
					body, r.Header.Get("Stripe-Signature"), "whsec_pretend", webhook.ConstructEventOptions{IgnoreTolerance: true},
				)
				if err != nil {
					t.Errorf("verify %s: %v", body, err)
				}
				mu.Lock()
				defer mu.Unlock()
				received = append(received, strings.TrimPrefix(string(event.Type), "payment_intent."))
				if len(received) <= len(tt.responses) {
					w.WriteHeader(tt.responses[len(received)-1])
				}
			}))
			t.Cleanup(endpoint.Close)
			server, err := stripetest.Serve(stripetest.Options{})
			must(t, err)
			var observed atomic.Int64
			hooks := &stripetest.Webhooks{
				Server: server, URL: endpoint.URL, Secret: "whsec_pretend",
				Deliveries: tt.deliveries, Observe: func(stripetest.Sent) { observed.Add(1) },
			}
			ctx, stop := context.WithCancel(t.Context())
			var run sync.WaitGroup
			run.Go(func() { hooks.Run(ctx) })
			t.Cleanup(func() {
				stop()
				run.Wait()
				_ = server.Close()
			})
			server.Machine(func(m *stripetest.Machine) {
				w := &world{Machine: m, t: t, now: server.Now()}
				for _, method := range tt.payments {
					w.pay(method)
				}
			})
			for range 10 {
				for !hooks.Idle() {
					time.Sleep(time.Millisecond) //nolint:forbidigo // requests take real time
				}
				server.Advance(tt.step)
			}
			mu.Lock()
			defer mu.Unlock()
			counts := []int{int(observed.Load()), len(hooks.Sent())}
			if got := strings.Join(received, " "); got != tt.want || !slices.Equal(counts, []int{len(received), len(received)}) {
				t.Errorf("got %q, observed and sent %d, want %q", got, counts, tt.want)
			}
		})
	}
}

package stripetest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// That an event is signed, and sent again until it is accepted, is what scripts/conform
// checks.
func TestDeliveriesPlanWhenAnEventIsSent(t *testing.T) {
	for claim, tt := range map[string]struct {
		deliveries func(stripetest.Event) []time.Duration
		step       time.Duration // of ten
		want       string
	}{
		"an event without deliveries is lost": {func(e stripetest.Event) []time.Duration {
			return []time.Duration{0}[min(e.Number-1, 1):]
		}, time.Hour, "succeeded"},
		"an event may come twice, late and out of order": {func(e stripetest.Event) []time.Duration {
			return [][]time.Duration{{25 * time.Hour}, {0, time.Hour}}[e.Number-1]
		}, 5 * time.Hour, "payment_failed payment_failed succeeded"},
	} {
		t.Run(claim, func(t *testing.T) {
			var mu sync.Mutex
			var received, observed []string
			note := func(all *[]string, event string) {
				mu.Lock()
				defer mu.Unlock()
				*all = append(*all, strings.TrimPrefix(event, "payment_intent."))
			}
			endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var event struct{ Type string }
				if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
					t.Error(err)
				}
				note(&received, event.Type)
			}))
			t.Cleanup(endpoint.Close)
			server, err := stripetest.Serve(stripetest.Options{})
			must(t, err)
			hooks := &stripetest.Webhooks{
				Server: server, URL: endpoint.URL, Secret: "whsec_pretend", Deliveries: tt.deliveries,
				Observe: func(s stripetest.Sent) { note(&observed, s.Event.Type) },
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
				w.pay("pm_card_visa")
				w.pay("pm_card_chargeDeclined")
			})
			for range 10 {
				for !hooks.Idle() {
					time.Sleep(time.Millisecond) //nolint:forbidigo // requests take real time
				}
				server.Advance(tt.step)
			}
			got := strings.Join(received, " ")
			if got != tt.want || got != strings.Join(observed, " ") || len(hooks.Sent()) != len(received) {
				t.Errorf("got %q, observed %q and sent %d, want %q", got, observed, len(hooks.Sent()), tt.want)
			}
		})
	}
}

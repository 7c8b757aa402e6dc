package system_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestWebhooks runs both functions over one table: what Stripe reports after the charge
// settles the order.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	webhook := w.Build(t, "orderonce/functions/webhook")
	start := func(t *testing.T, deliveries func(stripetest.Event) []time.Duration) *running {
		t.Helper()
		return w.start(t, generous(system.Options{Webhook: webhook, Deliveries: deliveries}))
	}
	for claim, deliveries := range map[string]func(stripetest.Event) []time.Duration{
		"webhooks settle what Stripe reports later": nil,
		"webhooks three times, reversed and three days late settle the same": func(e stripetest.Event) []time.Duration {
			late := 72*time.Hour - time.Duration(e.Number)*time.Hour
			return []time.Duration{late, late + time.Minute, late + 2*time.Minute}
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			want := map[order.ID]outcome{
				"card": {order.Paid, 1, 1}, "bank": {order.Paid, 1, 2}, "days": {order.Paid, 1, 2}, "bounces": {order.Declined, 0, 2},
			}
			if diff := cmp.Diff(later(start(t, deliveries)), want); diff != "" {
				t.Errorf("status, charges, events (-got +want):\n%s", diff)
			}
		})
	}
	t.Run("a request that Stripe did not sign calls nothing", func(t *testing.T) {
		t.Parallel()
		forged(t, start(t, nil))
	})
}

// later lets Stripe report on four orders after their messages were settled, and returns
// what became of them.
func later(s *running) map[order.ID]outcome {
	s.t.Helper()
	s.post(bodyWith("card", "pm_card_visa"), bodyWith("bank", "pm_card_authenticationRequired"),
		bodyWith("days", "pm_usBankAccount_processing"), bodyWith("bounces", "pm_usBankAccount_processing"))
	s.settle()
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, i := range m.Intents() {
			var err error
			switch i.OrderID() {
			case "bank":
				err = m.CustomerPays(s.Stripe.Now(), i.ID)
			case "days", "bounces":
				err = m.Settle(s.Stripe.Now(), i.ID, i.OrderID() == "days")
			}
			if err != nil {
				s.t.Error(err)
			}
		}
	})
	for range 4 {
		if err := s.Heard(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.Advance(24 * time.Hour)
	}
	if bad := slices.DeleteFunc(s.Events.Sent(), func(e stripetest.Sent) bool { return e.Status == http.StatusOK }); len(bad) > 0 {
		s.t.Errorf("got %+v, want 200 for every webhook", bad)
	}
	b := s.settle()
	got := map[order.ID]outcome{}
	for id := range b.Records {
		got[id] = outcomeOf(b, id)
	}
	return got
}

// forged sends requests that must not reach the table or Stripe.
func forged(t *testing.T, s *running) {
	t.Helper()
	body := []byte(`{"id":"evt_1","object":"event","type":"payment_intent.succeeded","created":1,"data":{"object":{"id":"pi_1",` +
		`"status":"succeeded","metadata":{"orderId":"ORD-1","scope":"local"}}}}`)
	large := append(bytes.Clone(body), bytes.Repeat([]byte(" "), 1<<20)...)
	now := time.Now()
	for claim, tt := range map[string]struct {
		body   []byte
		header string
		want   int
	}{
		"forged":    {body, stripe.Signature(body, now, "whsec_forged"), http.StatusBadRequest},
		"stale":     {body, stripe.Signature(body, now.Add(-6*time.Minute), system.WebhookSecret), http.StatusBadRequest},
		"truncated": {body[:50], stripe.Signature(body, now, system.WebhookSecret), http.StatusBadRequest},
		"too large": {large, stripe.Signature(large, now, system.WebhookSecret), http.StatusRequestEntityTooLarge},
	} {
		if got := request(t, s.API.URL+"/stripe/webhook", tt.body, tt.header); got != tt.want {
			t.Errorf("%s: got %d, want %d", claim, got, tt.want)
		}
	}
	if calls := s.Proxy.Total() + len(s.Stripe.Calls()); calls != 0 {
		t.Errorf("got %d calls to the table and to Stripe, want none", calls)
	}
	for result, n := range map[string]int{"invalid_signature": 3, "too_large": 1} {
		if got := strings.Count(s.log.Text(), fmt.Sprintf(`"Result":%q`, result)); got != n {
			t.Errorf("got %d of %s in the log, want %d:\n%s", got, result, n, s.log.Text())
		}
	}
}

func request(t *testing.T, url string, body []byte, signature string) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Stripe-Signature", signature)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

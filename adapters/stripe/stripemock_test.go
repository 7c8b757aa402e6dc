package stripe_test

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/dispute"
	"orderonce/adapters/stripe/payer"
	"orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	domain "orderonce/domain/refund"
)

func clock() time.Time { return time.Unix(1_790_000_000, 0) }

// TestStripeMockAcceptsEveryRequest sends every request of the adapter to stripe-mock,
// which checks parameters against Stripe's OpenAPI description. stripe-mock keeps no
// state and responds with fixtures, so the test says nothing about behavior. An error of
// a call that could not use its fixture does not matter.
func TestStripeMockAcceptsEveryRequest(t *testing.T) {
	sent := map[string]bool{}
	check := func(next http.RoundTripper) http.RoundTripper {
		return rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(r)
			if err == nil && res.StatusCode != http.StatusOK {
				body, _ := io.ReadAll(res.Body)
				t.Errorf("%s %s: got %d %s, want 200", r.Method, r.URL, res.StatusCode, body)
			}
			query, _, _ := strings.Cut(r.URL.RawQuery, "=")
			sent[stripe.CallName(r)+" "+query] = true
			return res, err
		})
	}
	o := stripe.Options{
		Key: rigtest.Key, Scope: rigtest.Scope, BaseURL: stripeMock(t), Now: clock,
		Transport: check(http.DefaultTransport), Measure: check,
	}
	ctx, p := t.Context(), charge.New(o)
	for currency, amount := range map[order.Currency]int64{ // they differ in how Stripe writes amounts
		"usd": 1, "eur": order.Currency("eur").Max(), "jpy": 500, "kwd": 5120, "isk": 900, "ugx": 1200,
	} {
		ordered := rigtest.OrderOf(t, "pm_card_visa", order.Money{Amount: amount, Currency: currency})
		_, err := p.Prepare(ctx, ordered, order.PrepareKey(rigtest.Scope, ordered.ID()))
		rigtest.Must(t, err)
	}
	_, _ = p.Confirm(ctx, rigtest.IntentID, order.ConfirmKey(rigtest.Scope, "ORD-1", 1))
	_, _ = p.CancelIntent(ctx, rigtest.IntentID, order.CancelKey(rigtest.Scope, "ORD-1", clock()))
	_, _ = p.Read(ctx, rigtest.IntentID)
	_, _ = p.Find(ctx, "ORD-1")
	_, _ = dispute.New(o).Disputes(ctx, rigtest.IntentID)
	_, _ = payer.New(o).Payer(ctx, rigtest.IntentID)
	session := refund.New(o).Open(ctx)
	t.Cleanup(session.Close)
	_, _ = session.Read(ctx, rigtest.IntentID)
	_, _ = session.ReadRefund(ctx, "re_3Pretend")
	_, _ = session.Create(ctx, domain.CreateParams{
		Intent: rigtest.IntentID, OrderID: "ORD-1", ID: "R1", Amount: 500, Reason: domain.Duplicate, Key: "k",
	})
	want := []string{
		"GET /v1/disputes limit", "GET /v1/payment_intents/search query",
		"GET /v1/payment_intents/{id} ", "GET /v1/payment_intents/{id} expand[0]", "GET /v1/refunds/{id} ",
		"POST /v1/payment_intents ", "POST /v1/payment_intents/{id}/cancel ", "POST /v1/payment_intents/{id}/confirm ",
		"POST /v1/refunds ",
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(sent)), want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

// stripeMock runs stripe-mock until the test ends, and returns its URL. It gets a free
// port for HTTPS too, because without one it listens on every interface.
func stripeMock(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("STRIPE_MOCK")
	if binary == "" {
		t.Skip("STRIPE_MOCK must name the binary of stripe-mock: run make stripe-mock")
	}
	cmd := exec.CommandContext(t.Context(), binary,
		"-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	rigtest.Must(t, err)
	rigtest.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context kills it
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "Listening for HTTP at address: "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock ended without printing its address")
	return ""
}

package stripe_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// TestStripeMockAcceptsEveryRequest sends every request of the adapter to stripe-mock,
// which checks parameters against Stripe's OpenAPI description. stripe-mock keeps no
// state and responds with fixtures, so the test says nothing about behavior.
func TestStripeMockAcceptsEveryRequest(t *testing.T) {
	t.Parallel()
	binary := os.Getenv("STRIPE_MOCK")
	if binary == "" {
		t.Skip("STRIPE_MOCK must name the binary of stripe-mock: run make stripe-mock")
	}
	edited := ok(intentWithCharge("requires_payment_method", null, charge))
	sent := map[string]bool{}
	mock := startStripeMock(t, binary)
	p := stripe.New(stripe.Options{
		Key: testKey, Scope: scope, BaseURL: mock,
		Transport: requireKey{t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/v1/payment_intents/pi_3Pretend" && r.URL.RawQuery == "" {
				return edited.roundTrip(r) // so that Read asks for the latest charge too
			}
			sent[stripe.CallName(r)+" "+queryNames(r)] = true
			return http.DefaultTransport.RoundTrip(r)
		})},
	})
	for _, amount := range []order.Money{ // the currencies differ in how Stripe writes amounts
		{Amount: 1, Currency: "usd"},
		{Amount: order.Currency("eur").Max(), Currency: "eur"},
		{Amount: 500, Currency: "jpy"},
		{Amount: 5120, Currency: "kwd"},
		{Amount: 900, Currency: "isk"},
		{Amount: 1200, Currency: "ugx"},
	} {
		o := newOrder(t, "pm_card_visa", total(amount))
		intent, err := p.Prepare(t.Context(), o, order.PrepareKey(scope, o.ID()))
		if err != nil {
			t.Fatalf("Prepare %v: %v", amount, err)
		}
		if _, err := p.Confirm(t.Context(), intent.ID, order.ConfirmKey(scope, o.ID(), 1)); err != nil {
			t.Errorf("Confirm %v: %v", amount, err)
		}
		if _, err := p.Read(t.Context(), intent.ID); err != nil {
			t.Errorf("Read %v: %v", amount, err)
		}
		if _, err := p.Find(t.Context(), o.ID()); err != nil {
			t.Errorf("Find %v: %v", amount, err)
		}
	}
	if _, err := p.Read(t.Context(), intentID); err != nil {
		t.Errorf("Read an edited intent: %v", err)
	}
	refundAt(t, mock, sent)
	want := map[string]bool{
		"POST /v1/payment_intents ":              true,
		"POST /v1/payment_intents/{id}/confirm ": true,
		"GET /v1/payment_intents/{id} ":          true,
		"GET /v1/payment_intents/{id} expand[]":  true,
		"GET /v1/payment_intents/search query":   true,
		"POST /v1/refunds ":                      true,
		"GET /v1/refunds/{id} ":                  true,
		"GET /v1/refunds limit":                  true,
	}
	if diff := cmp.Diff(sent, want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

// refundAt makes and reads a refund. The fixtures' intent is not paid, so the read is a
// response of ours, which has more refunds.
func refundAt(t *testing.T, mock string, sent map[string]bool) {
	t.Helper()
	paid := ok(succeededIntent(refundedCharge(`{"data":[` + refundJSON("succeeded", null) + `],"has_more":true}`)))
	s := stripe.NewRefunds(stripe.Options{
		Key: testKey, Scope: scope, BaseURL: mock, Now: clock,
		Measure: func(next http.RoundTripper) http.RoundTripper {
			return requireKey{t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
				res, err := next.RoundTrip(r)
				if r.URL.Path != "/v1/payment_intents/pi_3Pretend" || err != nil || res.StatusCode != http.StatusOK {
					sent[stripe.CallName(r)+" "+queryNames(r)] = true
					return res, err
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				instead, err := paid.roundTrip(r)
				if err == nil {
					instead.Header.Set("Date", "Tue, 22 Sep 2026 13:33:20 GMT")
				}
				return instead, err
			})}
		},
	}).Open(t.Context())
	t.Cleanup(s.Close)
	if _, err := s.Read(t.Context(), intentID); err != nil {
		t.Errorf("Read refunds: %v", err)
	}
	if _, err := s.Create(t.Context(), theRefundOrder()); err != nil {
		t.Errorf("Create: %v", err)
	}
	if _, err := s.ReadRefund(t.Context(), refundID); err != nil {
		t.Errorf("ReadRefund: %v", err)
	}
}

func queryNames(r *http.Request) string {
	name, _, _ := strings.Cut(r.URL.RawQuery, "=")
	return name
}

// startStripeMock runs stripe-mock until the test ends, and returns its URL. It gets a
// free port for HTTPS too, because without one it listens on every interface.
func startStripeMock(t *testing.T, binary string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
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

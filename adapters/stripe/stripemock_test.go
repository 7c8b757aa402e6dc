package stripe_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// TestStripeMockAcceptsEveryRequest sends every request of the adapter to stripe-mock,
// which checks parameters against Stripe's OpenAPI description. stripe-mock keeps no
// state and responds with fixtures, so the test says nothing about behavior.
func TestStripeMockAcceptsEveryRequest(t *testing.T) {
	t.Parallel()
	edited := rigtest.OK(rigtest.IntentWithCharge("requires_payment_method", rigtest.Null, rigtest.Charge))
	sent := map[string]bool{}
	mock := rigtest.StripeMock(t)
	p := charge.New(stripe.Options{
		Key: rigtest.Key, Scope: rigtest.Scope, BaseURL: mock,
		Transport: rigtest.RequireKey{TB: t, Next: rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/v1/payment_intents/pi_3Pretend" && r.URL.RawQuery == "" {
				return edited.RoundTrip(r) // so that Read asks for the latest charge too
			}
			sent[stripe.CallName(r)+" "+rigtest.QueryName(r)] = true
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
		o := rigtest.NewOrder(t, "pm_card_visa", rigtest.Total(amount))
		intent, err := p.Prepare(t.Context(), o, order.PrepareKey(rigtest.Scope, o.ID()))
		if err != nil {
			t.Fatalf("Prepare %v: %v", amount, err)
		}
		if _, err := p.Confirm(t.Context(), intent.ID, order.ConfirmKey(rigtest.Scope, o.ID(), 1)); err != nil {
			t.Errorf("Confirm %v: %v", amount, err)
		}
		if _, err := p.Read(t.Context(), intent.ID); err != nil {
			t.Errorf("Read %v: %v", amount, err)
		}
		if _, err := p.Find(t.Context(), o.ID()); err != nil {
			t.Errorf("Find %v: %v", amount, err)
		}
	}
	if _, err := p.Read(t.Context(), rigtest.IntentID); err != nil {
		t.Errorf("Read an edited intent: %v", err)
	}
	want := map[string]bool{
		"POST /v1/payment_intents ":              true,
		"POST /v1/payment_intents/{id}/confirm ": true,
		"GET /v1/payment_intents/{id} ":          true,
		"GET /v1/payment_intents/{id} expand[0]": true,
		"GET /v1/payment_intents/search query":   true,
	}
	if diff := cmp.Diff(sent, want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

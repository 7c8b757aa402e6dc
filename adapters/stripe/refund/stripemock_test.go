package refund_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest/rigtest"
)

// TestStripeMockAcceptsEveryRequest checks the parameters of refunds against Stripe's
// OpenAPI description. The fixtures' intent is not paid, so the read is a response of
// ours, which has more refunds.
func TestStripeMockAcceptsEveryRequest(t *testing.T) {
	t.Parallel()
	mock, sent := rigtest.StripeMock(t), map[string]bool{}
	paid := rigtest.OK(succeededIntent(refundedCharge(`{"data":[` + refundJSON("succeeded", rigtest.Null) + `],"has_more":true}`)))
	s := striperefund.New(stripe.Options{
		Key: rigtest.Key, Scope: rigtest.Scope, BaseURL: mock, Now: clock,
		Measure: func(next http.RoundTripper) http.RoundTripper {
			return rigtest.RequireKey{TB: t, Next: rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
				res, err := next.RoundTrip(r)
				if r.URL.Path != "/v1/payment_intents/pi_3Pretend" || err != nil || res.StatusCode != http.StatusOK {
					sent[stripe.CallName(r)+" "+rigtest.QueryName(r)] = true
					return res, err
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				instead, err := paid.RoundTrip(r)
				if err == nil {
					instead.Header.Set("Date", "Tue, 22 Sep 2026 13:33:20 GMT")
				}
				return instead, err
			})}
		},
	}).Open(t.Context())
	t.Cleanup(s.Close)
	if _, err := s.Read(t.Context(), rigtest.IntentID); err != nil {
		t.Errorf("Read refunds: %v", err)
	}
	if _, err := s.Create(t.Context(), theRefundOrder()); err != nil {
		t.Errorf("Create: %v", err)
	}
	if _, err := s.ReadRefund(t.Context(), refundID); err != nil {
		t.Errorf("ReadRefund: %v", err)
	}
	want := map[string]bool{"POST /v1/refunds ": true, "GET /v1/refunds/{id} ": true, "GET /v1/refunds limit": true}
	if diff := cmp.Diff(sent, want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

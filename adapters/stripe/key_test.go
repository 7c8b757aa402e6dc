package stripe_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

const elsewhere = "https://stripe.example"

func TestCheckKey(t *testing.T) {
	for claim, tt := range map[string]struct {
		key, base string
		want      error
	}{
		"a secret test key may be sent anywhere":     {" sk_test_canary_azAZ09\r\n", elsewhere, nil},
		"a restricted test key may be sent anywhere": {"rk_test_canary4242", elsewhere, nil},
		"a live key may be sent to Stripe":           {"rk_live_canary4242\n", "", nil},
		"a live key may not be sent elsewhere":       {"\nsk_live_canary4242", elsewhere, stripe.ErrLiveKey},
		"a restricted live key is sent nowhere else": {"rk_live_canary4242", "https://api.stripe.com", stripe.ErrLiveKey},
		"JSON has an error of its own":               {"\n" + `{"STRIPE_SECRET_KEY":"sk_test_canary"}`, "", stripe.ErrKeyInJSON},
		"an empty key is invalid":                    {"", "", stripe.ErrNotAKey},
		"a publishable key is invalid":               {"pk_test_canary", "", stripe.ErrNotAKey},
		"an organization's key is invalid":           {"sk_org_live_canary", "", stripe.ErrNotAKey},
		"a prefix alone is invalid":                  {"sk_test_", "", stripe.ErrNotAKey},
		"two keys are invalid":                       {"sk_test_canary\nsk_test_canary", "", stripe.ErrNotAKey},
		"a quoted key is invalid":                    {`"sk_test_canary"`, "", stripe.ErrNotAKey},
	} {
		err := stripe.CheckKey(tt.key, tt.base)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %v without the key", claim, err, tt.want)
		}
	}
}

// A client does not rely on the composition root to call CheckKey. Every key that is not
// a test key is live.
func TestALiveKeyIsSentToStripeOnly(t *testing.T) {
	for key, live := range map[string]bool{
		"sk_test_canary": false, "rk_test_canary": false, "\nsk_test_canary": false,
		"sk_live_canary": true, "\nrk_live_canary": true, "sk_canary": true, "": true,
	} {
		for _, base := range []string{"", elsewhere} {
			sent := false
			options := over(func(*http.Request) (*http.Response, error) {
				sent = true
				return nil, http.ErrAbortHandler
			})
			options.Key, options.BaseURL = key, base
			_, err := charge.New(options).Read(t.Context(), rigtest.IntentID)
			refused := live && base != ""
			if sent == refused || refused != errors.Is(err, stripe.ErrLiveKey) || stripe.Live(key) != live {
				t.Errorf("%q to %q: got %v, sent: %t, want it refused: %t", key, base, err, sent, refused)
			}
		}
	}
	double := stripe.Options{Key: "sk_live_canary", BaseURL: "http://127.0.0.1:1", Now: clock}
	_, err := refund.New(double).Open(t.Context()).Read(t.Context(), rigtest.IntentID)
	if rigtest.KindOf(t, err) != order.KindMisconfigured || !errors.Is(err, stripe.ErrLiveKey) {
		t.Errorf("a refund: got %v, want %v", err, stripe.ErrLiveKey)
	}
}

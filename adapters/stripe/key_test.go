package stripe_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

const elsewhere = "https://stripe.example"

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		key, base string
		want      error
	}{
		"a secret test key may be sent anywhere":     {"sk_test_canary_azAZ09", elsewhere, nil},
		"a restricted test key may be sent anywhere": {"rk_test_canary4242", elsewhere, nil},
		"a key may be stored with a newline":         {" sk_test_canary4242\r\n", elsewhere, nil},
		"a live key may be sent to Stripe":           {"rk_live_canary4242\n", "", nil},
		"a live key may not be sent elsewhere":       {"\nsk_live_canary4242", elsewhere, stripe.ErrLiveKey},
		"a restricted live key is sent nowhere else": {"rk_live_canary4242", "https://api.stripe.com", stripe.ErrLiveKey},
		"JSON has an error of its own":               {"\n" + `{"STRIPE_SECRET_KEY":"sk_test_canary"}`, "", stripe.ErrKeyInJSON},
		"an empty key is invalid":                    {"", "", stripe.ErrNotAKey},
		"a publishable key is invalid":               {"pk_test_canary", "", stripe.ErrNotAKey},
		"an organization's key is invalid":           {"sk_org_live_canary", "", stripe.ErrNotAKey},
		"a prefix alone is invalid":                  {"sk_test_", "", stripe.ErrNotAKey},
		"two keys are invalid":                       {"sk_test_canary sk_test_canary", "", stripe.ErrNotAKey},
		"two lines are invalid":                      {"sk_test_canary\nsk_test_canary", "", stripe.ErrNotAKey},
		"a quoted key is invalid":                    {`"sk_test_canary"`, "", stripe.ErrNotAKey},
		"a key with another character is invalid":    {"sk_test_/", "", stripe.ErrNotAKey},
	} {
		err := stripe.CheckKey(tt.key, tt.base)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", claim, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: error contains the key: %v", claim, err)
		}
	}
}

func TestEveryKeyThatIsNotATestKeyIsLive(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"sk_test_canary": false, "rk_test_canary": false, "\nsk_test_canary": false,
		"sk_live_canary": true, "rk_live_canary": true, " rk_live_canary\n": true, "sk_canary": true, "": true,
	} {
		if got := stripe.Live(key); got != want {
			t.Errorf("%q: got %t, want %t", key, got, want)
		}
	}
}

// New does not rely on the composition root to call CheckKey.
func TestALiveKeyIsSentToStripeOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, base string
		sent      int // requests, of three calls
	}{
		{"sk_live_canary", "", 3},
		{rigtest.Key, elsewhere, 3},
		{"sk_live_canary", elsewhere, 0},
		{"\nrk_live_canary", elsewhere, 0},
	} {
		sent := 0
		transport := rigtest.RoundTripFunc(func(*http.Request) (*http.Response, error) {
			sent++
			return nil, http.ErrAbortHandler
		})
		for name, call := range rigtest.Methods(t, stripe.Options{Key: tt.key, BaseURL: tt.base, Transport: transport}) {
			_, err := call(t.Context())
			refused := rigtest.KindOf(t, err) == order.KindMisconfigured && errors.Is(err, stripe.ErrLiveKey)
			if refused != (tt.sent == 0) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%q to %q, %s: got %v, want %v: %t", tt.key, tt.base, name, err, stripe.ErrLiveKey, tt.sent == 0)
			}
		}
		if sent != tt.sent {
			t.Errorf("%q to %q: got %d requests, want %d", tt.key, tt.base, sent, tt.sent)
		}
	}
}

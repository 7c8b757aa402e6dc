package stripe_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

const elsewhere = "https://stripe.example"

func TestKeys(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		key, base string
		want      error
	}{
		"a secret test key goes anywhere":                  {"sk_test_canary4242", elsewhere, nil},
		"a restricted test key goes anywhere":              {"rk_test_canary4242", elsewhere, nil},
		"a key may be stored with a newline":               {" sk_test_canary4242\r\n", elsewhere, nil},
		"a secret live key goes to Stripe":                 {"sk_live_canary4242", "", nil},
		"a restricted live key goes to Stripe":             {"rk_live_canary4242\n", "", nil},
		"a secret live key goes nowhere else":              {"sk_live_canary4242", elsewhere, stripe.ErrLiveKey},
		"a restricted live key goes nowhere else":          {"rk_live_canary4242", elsewhere, stripe.ErrLiveKey},
		"a live key with a newline goes nowhere else":      {"\nsk_live_canary4242", elsewhere, stripe.ErrLiveKey},
		"a live key does not go to what looks like Stripe": {"sk_live_canary4242", "https://api.stripe.com", stripe.ErrLiveKey},
		"nothing is no key":                                {"", "", stripe.ErrNotAKey},
		"a publishable key is no key":                      {"pk_test_canary", "", stripe.ErrNotAKey},
		"a webhook's secret is no key":                     {"whsec_canary", "", stripe.ErrNotAKey},
		"an organization's key is no account's":            {"sk_org_live_canary", "", stripe.ErrNotAKey},
		"a prefix is no key":                               {"sk_test_", "", stripe.ErrNotAKey},
		"two keys are no key":                              {"sk_test_canary sk_test_canary", "", stripe.ErrNotAKey},
		"two lines are no key":                             {"sk_test_canary\nsk_test_canary", "", stripe.ErrNotAKey},
		"a key in quotes is no key":                        {`"sk_test_canary"`, "", stripe.ErrNotAKey},
		"names and values are told from other mistakes":    {"\n" + `{"STRIPE_SECRET_KEY":"sk_test_canary"}`, "", stripe.ErrKeyInJSON},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			err := stripe.CheckKey(tt.key, tt.base)
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error holds the key: %v", err)
			}
		})
	}
}

func TestALiveKeyIsOneThatDoesNotSayTest(t *testing.T) {
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

// TestPaymentsKeepALiveKey is for the composition root that forgets to check.
func TestPaymentsKeepALiveKey(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		key, base string
		sent      int // of three calls
	}{
		"a live key goes to Stripe":               {"sk_live_canary", "", 3},
		"a test key goes anywhere":                {pretendKey, elsewhere, 3},
		"a live key goes nowhere else":            {"sk_live_canary", elsewhere, 0},
		"a restricted live key goes nowhere else": {"\nrk_live_canary", elsewhere, 0},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			sent := 0
			p := stripe.New(stripe.Options{Key: tt.key, BaseURL: tt.base, Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				sent++
				return nil, http.ErrAbortHandler
			})})
			for name, call := range calls(t, p) {
				_, err := call(t.Context())
				if refused := kindOf(t, err) == order.Misconfigured && errors.Is(err, stripe.ErrLiveKey); refused != (tt.sent == 0) {
					t.Errorf("%s: got %v", name, err)
				}
				if strings.Contains(err.Error(), "canary") {
					t.Errorf("%s: the error holds the key: %v", name, err)
				}
			}
			if sent != tt.sent {
				t.Errorf("%d requests were sent, want %d", sent, tt.sent)
			}
		})
	}
}

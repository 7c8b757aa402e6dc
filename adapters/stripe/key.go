package stripe

import (
	"errors"
	"regexp"
	"strings"

	"orderonce/domain/order"
)

// The reasons why an API key is not used. No error contains any part of the key.
var (
	ErrNotAKey   = errors.New("want a key that starts with sk_test_, sk_live_, rk_test_ or rk_live_")
	ErrKeyInJSON = errors.New("want the key alone as plain text, got JSON")
	ErrLiveKey   = errors.New("live key with another base URL: a live key may be sent to Stripe only")
)

// CheckKey returns ErrNotAKey unless a key is an account's secret or restricted one
// (docs.stripe.com/keys), ErrLiveKey for a live key and another base URL than "", which
// is Stripe, and ErrKeyInJSON for the JSON object that the console of Secrets Manager
// stores unless plain text is selected. Space around a key is ignored.
func CheckKey(key, baseURL string) error {
	switch key = strings.TrimSpace(key); {
	case strings.HasPrefix(key, "{"):
		return ErrKeyInJSON
	case !regexp.MustCompile(`^[sr]k_(test|live)_\w+$`).MatchString(key):
		return ErrNotAKey
	case baseURL != "" && Live(key):
		return ErrLiveKey
	}
	return nil
}

// ModeOf returns the mode of the intents that a key creates and can read.
func ModeOf(key string) order.Mode {
	if Live(key) {
		return order.LiveMode
	}
	return order.TestMode
}

// Live reports whether a key may charge real cards. Every key that is not marked as a
// test key counts as live.
func Live(key string) bool {
	key = strings.TrimSpace(key)
	return !strings.HasPrefix(key, "sk_test_") && !strings.HasPrefix(key, "rk_test_")
}

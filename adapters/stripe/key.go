package stripe

import (
	"errors"
	"regexp"
	"strings"
)

// Why a key is not used. None of these errors holds any of it.
var (
	ErrNotAKey   = errors.New("want a key that starts with sk_test_, sk_live_, rk_test_ or rk_live_")
	ErrKeyInJSON = errors.New("want the key alone as plain text, got names and values in JSON")
	ErrLiveKey   = errors.New("a live key goes to Stripe and nobody else: want no other base URL")
)

// keys are secret and restricted keys with their mode (docs.stripe.com/keys). A publishable key opens nothing here, and the key
// of an organization would need a header that names an account.
var keys = regexp.MustCompile(`^[sr]k_(test|live)_\w+$`)

// CheckKey is for whoever reads a key: wherever it comes from, it is an account's secret or restricted key, and a live one goes to
// no base URL but Stripe's own, "". It returns ErrNotAKey, ErrLiveKey, or ErrKeyInJSON for what the console of Secrets Manager
// makes of a key unless it is asked for plain text. Space around a key does not count.
func CheckKey(key, baseURL string) error {
	switch key = strings.TrimSpace(key); {
	case strings.HasPrefix(key, "{"):
		return ErrKeyInJSON
	case !keys.MatchString(key):
		return ErrNotAKey
	}
	return checkAddress(key, baseURL)
}

// Live reports whether a key may charge real cards: any that does not say test.
func Live(key string) bool {
	key = strings.TrimSpace(key)
	return !strings.HasPrefix(key, "sk_test_") && !strings.HasPrefix(key, "rk_test_")
}

func checkAddress(key, baseURL string) error {
	if baseURL != "" && Live(key) {
		return ErrLiveKey
	}
	return nil
}

package stripe

import (
	"errors"
	"strings"
)

// Why a key is not used. None of these errors holds any of it.
var (
	ErrNotAKey   = errors.New("want a key that starts with sk_test_, sk_live_, rk_test_ or rk_live_")
	ErrKeyInJSON = errors.New("want the key alone as plain text, got names and values in JSON")
	ErrLiveKey   = errors.New("a live key goes to Stripe and nobody else: want no other base URL")
)

// CheckKey is for whoever reads a key: wherever it comes from, it is an account's secret or restricted key, and a live one goes to
// no base URL but Stripe's own, "". It returns ErrNotAKey, ErrLiveKey, or ErrKeyInJSON for what the console of Secrets Manager
// makes of a key unless it is asked for plain text. Space around a key does not count.
func CheckKey(key, baseURL string) error {
	switch key = strings.TrimSpace(key); {
	case strings.HasPrefix(key, "{"):
		return ErrKeyInJSON
	case !isKey(key):
		return ErrNotAKey
	}
	return checkAddress(key, baseURL)
}

// isKey reports whether a text is a secret or restricted key with its mode (docs.stripe.com/keys). A publishable key opens nothing
// here, and the key of an organization would need a header that names an account.
func isKey(s string) bool {
	kind, rest, _ := strings.Cut(s, "_")
	mode, id, _ := strings.Cut(rest, "_")
	odd := func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	return (kind == "sk" || kind == "rk") && (mode == "test" || mode == "live") && id != "" && !strings.ContainsFunc(id, odd)
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

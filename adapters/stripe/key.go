package stripe

import (
	"errors"
	"strings"
)

// The reasons why an API key is not used. No error contains any part of the key.
var (
	ErrNotAKey   = errors.New("want a key that starts with sk_test_, sk_live_, rk_test_ or rk_live_")
	ErrKeyInJSON = errors.New("want the key alone as plain text, got JSON")
	ErrLiveKey   = errors.New("live key with another base URL: a live key may be sent to Stripe only")
)

// CheckKey reports whether a key may be used with a base URL: it must be an account's
// secret or restricted key, and a live one may be sent to no base URL but "", which is
// Stripe's. It returns ErrNotAKey, ErrLiveKey, or ErrKeyInJSON for the JSON object that
// the console of Secrets Manager stores unless plain text is selected. Space around a key
// is ignored.
func CheckKey(key, baseURL string) error {
	switch key = strings.TrimSpace(key); {
	case strings.HasPrefix(key, "{"):
		return ErrKeyInJSON
	case !isKey(key):
		return ErrNotAKey
	}
	return checkLiveKey(key, baseURL)
}

// isKey reports whether a text is a secret or restricted key with its mode
// (docs.stripe.com/keys). A publishable key may not call this API, and an organization's
// key would need a header that names an account.
func isKey(s string) bool {
	kind, rest, _ := strings.Cut(s, "_")
	mode, id, _ := strings.Cut(rest, "_")
	invalid := func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	return (kind == "sk" || kind == "rk") && (mode == "test" || mode == "live") &&
		id != "" && !strings.ContainsFunc(id, invalid)
}

// Live reports whether a key may charge real cards. Every key that is not marked as a
// test key counts as live.
func Live(key string) bool {
	key = strings.TrimSpace(key)
	return !strings.HasPrefix(key, "sk_test_") && !strings.HasPrefix(key, "rk_test_")
}

func checkLiveKey(key, baseURL string) error {
	if baseURL != "" && Live(key) {
		return ErrLiveKey
	}
	return nil
}

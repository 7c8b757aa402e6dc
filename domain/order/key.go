package order

import (
	"fmt"
	"strconv"
	"time"
)

// Scope separates the orders of deployments that share a payment account, such as "prod"
// and "staging-eu". It is part of every idempotency key and of every intent's metadata.
type Scope string

// ScopeRule describes a valid Scope, for error messages.
const ScopeRule = "1 to 32 lower-case letters, digits or '-', the first a letter"

// NewScope validates a scope from configuration.
func NewScope(s string) (Scope, error) {
	ok := s != "" && len(s) <= 32 && 'a' <= s[0] && s[0] <= 'z' &&
		every(s, func(c byte) bool { return isAlnum(c) && (c < 'A' || c > 'Z') || c == '-' })
	if !ok {
		return "", fmt.Errorf("scope %q: want %s", s, ScopeRule)
	}
	return Scope(s), nil
}

// Key is an idempotency key. It consists of scope, order id, step and attempt, so that a
// redelivery sends the same key. It has at most 131 characters; Stripe allows 255
// (docs.stripe.com/api/idempotent_requests).
type Key struct{ value string }

// String returns the key as it is sent.
func (k Key) String() string { return k.value }

// PrepareKey returns the key of an order's first Prepare. It does not contain the
// attempt, so that the attempt after a crash between Prepare and Bind gets the same
// intent back.
//
// Change the last part of the key in a release that sends other parameters to Prepare:
// the provider refuses other parameters under a known key, which would park orders.
func PrepareKey(s Scope, id ID) Key {
	return Key{string(s) + "/order/" + string(id) + "/prepare"}
}

// PrepareAgainKey returns the key for an attempt whose PrepareKey holds a stored failure.
func PrepareAgainKey(s Scope, id ID, attempt int) Key {
	return Key{PrepareKey(s, id).value + "/" + strconv.Itoa(attempt)}
}

// ConfirmKey returns the key of one attempt's Confirm. It contains the attempt, so that a
// stored failure is not replayed to the next attempt. No key is needed to prevent a
// second charge: the intent succeeds at most once.
func ConfirmKey(s Scope, id ID, attempt int) Key {
	return Key{string(s) + "/order/" + string(id) + "/confirm/" + strconv.Itoa(attempt)}
}

// CancelKey returns the key of one Cancel. Repeating a cancellation is safe, so a new
// time may bring a new key, which no stored failure answers.
func CancelKey(s Scope, id ID, at time.Time) Key {
	return Key{string(s) + "/order/" + string(id) + "/cancel/" + strconv.FormatInt(at.UnixMilli(), 10)}
}

package order

import (
	"fmt"
	"strconv"
)

// Scope separates the orders of one deployment from those of any other that shares a payment account, such as
// "prod" and "staging-eu". It is part of every idempotency key and of every intent's metadata.
type Scope string

// ScopeRule says what NewScope accepts.
const ScopeRule = "1 to 32 lower-case letters, digits or '-', the first a letter"

// NewScope makes a scope out of configuration.
func NewScope(s string) (Scope, error) {
	ok := s != "" && len(s) <= 32 && 'a' <= s[0] && s[0] <= 'z' &&
		every(s, func(c byte) bool { return isAlnum(c) && (c < 'A' || c > 'Z') || c == '-' })
	if !ok {
		return "", fmt.Errorf("scope %q: want %s", s, ScopeRule)
	}
	return Scope(s), nil
}

// Key is an idempotency key. It is made of scope, order id, step and attempt only, so that a redelivery sends the
// same one, and it cannot be made from anything else. At most 131 of the 255 characters that Stripe allows.
type Key struct{ value string }

// String is the key as it is sent.
func (k Key) String() string { return k.value }

// PrepareKey is the key of an order's first and usually only Prepare. It holds no attempt: a worker that died
// between Prepare and Bind is followed by one that gets the same intent back. A release that asks the provider for an intent in
// other words than the one before needs another last part here: under the same key the provider refuses them, and the orders
// that are under way would be parked.
func PrepareKey(s Scope, id ID) Key {
	return Key{string(s) + "/order/" + string(id) + "/prepare"}
}

// PrepareAgainKey is for an attempt that found PrepareKey burnt by a stored failure.
func PrepareAgainKey(s Scope, id ID, attempt int) Key {
	return Key{PrepareKey(s, id).value + "/" + strconv.Itoa(attempt)}
}

// ConfirmKey is the key of one attempt's Confirm. It holds the attempt, because a stored failure must not answer the
// next one: that a second Confirm cannot charge again is the intent's promise, not the key's.
func ConfirmKey(s Scope, id ID, attempt int) Key {
	return Key{string(s) + "/order/" + string(id) + "/confirm/" + strconv.Itoa(attempt)}
}

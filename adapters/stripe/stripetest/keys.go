package stripetest

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// day is how long Stripe promises to keep a key.
const day = 24 * time.Hour

// digest stands for the parameters of a request.
type digest [sha256.Size]byte

// stored is what a key remembers of its first request.
type stored struct {
	path    string
	params  digest
	at      time.Time
	running bool
	answer  Response
}

// replay is the idempotency layer. docs.stripe.com/api/idempotent_requests: the first answer is saved once execution
// begins and sent again, errors included; other parameters are an error; GET requests ignore keys.
func (m *Machine) replay(c *call) *Response {
	if len(c.Key) > 255 {
		return invalid("", "idempotency_key", "Idempotency keys are at most 255 characters long.")
	}
	if c.Method != post || c.Key == "" {
		return nil
	}
	c.params = sha256.Sum256([]byte(c.Form.Encode()))
	first, known := m.keys[c.heldKey()]
	switch {
	case !known || m.expired(first, c.begun):
		return nil
	case first.path != c.Path:
		return keyMismatch(fmt.Sprintf("for the same endpoint they were first used for (%q vs %q)", c.Path, first.path))
	case first.params != c.params:
		return keyMismatch("with the same parameters they were first used with")
	case first.running:
		return keyInUse()
	}
	again := first.answer
	again.Original = first.answer.RequestID
	return &again
}

// heldKey is what a key is kept under: another account's key of the same name is another one.
func (c *call) heldKey() string { return c.account() + "\n" + c.Key }

// holdKey marks a key as in use, replacing an expired one.
func (m *Machine) holdKey(c call) {
	if c.Method == post && c.Key != "" && m.rules.KeyLife >= 0 {
		m.keys[c.heldKey()] = stored{path: c.Path, params: c.params, at: c.begun, running: true}
	}
}

func (m *Machine) storeAnswer(c call) {
	first, held := m.keys[c.heldKey()]
	if c.Method != post || !held {
		return
	}
	first.running, first.answer = false, c.answer
	m.keys[c.heldKey()] = first
}

func (m *Machine) expired(s stored, now time.Time) bool {
	life := m.rules.KeyLife
	if life == 0 {
		life = day
	}
	return !s.running && now.Sub(s.at) >= life
}

// PruneKeys forgets every key that is old enough. Lookups do not need it; memory does.
func (m *Machine) PruneKeys(now time.Time) {
	for key, s := range m.keys {
		if m.expired(s, now) {
			delete(m.keys, key)
		}
	}
}

// ForgetKeys forgets every key whose request has ended, whatever its age.
func (m *Machine) ForgetKeys() {
	for key, s := range m.keys {
		if !s.running {
			delete(m.keys, key)
		}
	}
}

// keyMismatch is a 400 of the type made for it. docs.stripe.com/api/errors: idempotency_error means that a key was
// used again "on a request that does not match the first request's API endpoint and parameters".
func keyMismatch(rule string) *Response {
	return refusal(400, Error{
		Type:    "idempotency_error",
		Message: "Keys for idempotent requests can only be used " + rule + ".",
	})
}

// keyInUse is the answer to a twin of a request that still runs. docs.stripe.com/error-codes: idempotency_key_in_use.
func keyInUse() *Response {
	r := refusal(409, Error{
		Type: "invalid_request_error", Code: "idempotency_key_in_use",
		Message: "There is currently another in-progress request using this Idempotent Key.",
	})
	r.ShouldRetry = "true"
	return r
}

package stripetest

import "time"

// day is how long Stripe promises to keep a key.
const day = 24 * time.Hour

// stored is what is stored under a key about its first request.
type stored struct {
	path     string
	params   string // encoded
	at       time.Time
	running  bool
	response Response
}

// replay is the idempotency layer. docs.stripe.com/api/idempotent_requests: the first
// response is stored once the execution begins and is sent again, also if it is an error;
// different parameters are an error; GET requests ignore keys.
func (m *Machine) replay(c *call) *Response {
	if len(c.Key) > 255 {
		return invalid("", "idempotency_key", "Idempotency keys are at most 255 characters long.")
	}
	if c.Method != post || c.Key == "" {
		return nil
	}
	c.params = c.Form.Encode()
	first, known := m.keys[c.Key]
	switch {
	case !known || m.expired(first, c.begun):
		return nil
	case first.path != c.Path:
		return keyMismatch("endpoint")
	case first.params != c.params:
		return keyMismatch("parameters")
	case first.running:
		return keyInUse()
	}
	again := first.response
	again.Original = first.response.RequestID
	return &again
}

// holdKey marks a key as in use, replacing an expired one.
func (m *Machine) holdKey(c *call) {
	if c.Method == post && c.Key != "" && m.rules.KeyLife >= 0 {
		m.keys[c.Key] = stored{path: c.Path, params: c.params, at: c.begun, running: true}
	}
}

func (m *Machine) storeResponse(c *call) {
	first, held := m.keys[c.Key]
	if c.Method != post || !held {
		return
	}
	first.running, first.response = false, c.response
	m.keys[c.Key] = first
}

func (m *Machine) expired(s stored, now time.Time) bool {
	life := m.rules.KeyLife
	if life == 0 {
		life = day
	}
	return !s.running && now.Sub(s.at) >= life
}

// PruneKeys removes expired keys, to save memory. Requests ignore expired keys anyway.
func (m *Machine) PruneKeys(now time.Time) {
	for key, s := range m.keys {
		if m.expired(s, now) {
			delete(m.keys, key)
		}
	}
}

// ForgetKeys removes every key whose request has ended, whatever its age.
func (m *Machine) ForgetKeys() {
	for key, s := range m.keys {
		if !s.running {
			delete(m.keys, key)
		}
	}
}

// keyMismatch is a 400 of type idempotency_error. docs.stripe.com/api/errors: a key was
// used again "on a request that does not match the first request's API endpoint and
// parameters".
func keyMismatch(rule string) *Response {
	r := invalid("", "", "Keys for idempotent requests can only be used with the same %s.", rule)
	r.Error.Type = "idempotency_error"
	return r
}

// keyInUse is the response to a request whose key belongs to an executing one
// (docs.stripe.com/error-codes, idempotency_key_in_use).
func keyInUse() *Response {
	return refuse(409, "idempotency_key_in_use", "", "Another request is executing with this idempotency key.")
}

package stripetest

import (
	"slices"
	"time"
)

// Fault is something that goes wrong, as data, so that worlds with faults can be copied and compared.
type Fault struct {
	Kind    FaultKind
	Number  int           // 0 means every call; else only that of this Call.Number, and when it is over the fault is gone.
	On      Endpoint      // Empty means every endpoint.
	OrderID string        // Empty means every order; else metadata orderId, also of the intent that a path names.
	Times   int           // 0 means once; a negative number means for ever.
	Delay   time.Duration // For Latency and SlowSuccess.
}

// FaultKind says what goes wrong.
type FaultKind string

// The faults. Those before execution are stored under no key; a request meets at most one fault of each stage.
const (
	LoseAnswerBeforeEffect FaultKind = "lose_answer_before_effect" // The request never arrives.
	Unauthorized           FaultKind = "unauthorized"              // 401.
	Forbidden              FaultKind = "forbidden"                 // 403, as for a restricted key.
	RateLimited            FaultKind = "rate_limited"              // 429, before the key layer.
	LockTimeout            FaultKind = "lock_timeout"              // 429, the object is in use.
	KeyInUse               FaultKind = "key_in_use"                // 409, a twin seems to run.
	Unavailable            FaultKind = "unavailable"               // 503.

	ServerErrorBeforeEffect FaultKind = "server_error_before_effect" // 500, stored, nothing happened.
	ServerErrorAfterEffect  FaultKind = "server_error_after_effect"  // 500, stored, although it happened.
	Decline                 FaultKind = "decline"                    // The card is declined, whichever it is.
	Latency                 FaultKind = "latency"                    // Delay before the effect.
	SlowSuccess             FaultKind = "slow_success"               // Delay between effect and answer.

	LoseAnswerAfterEffect FaultKind = "lose_answer_after_effect" // The answer, also a replayed one, is lost.
	Garbage               FaultKind = "garbage"                  // Half of the answer's body arrives.
)

type stage int

const (
	door stage = iota
	execution
	delivery
)

func (k FaultKind) stage() stage {
	switch k {
	case ServerErrorBeforeEffect, ServerErrorAfterEffect, Decline, Latency, SlowSuccess:
		return execution
	case LoseAnswerAfterEffect, Garbage:
		return delivery
	case LoseAnswerBeforeEffect, Unauthorized, Forbidden, RateLimited, LockTimeout, KeyInUse, Unavailable:
	}
	return door
}

// Fail arms a fault.
func (m *Machine) Fail(f Fault) {
	f.Times = max(f.Times, -1)
	if f.Times == 0 {
		f.Times = 1
	}
	m.faults = append(m.faults, f)
}

// Heal disarms every fault.
func (m *Machine) Heal() { m.faults = nil }

// takeFault uses up one armed fault of a stage; the zero Fault means that there is none.
func (m *Machine) takeFault(c call, at stage) Fault {
	i := slices.IndexFunc(m.faults, func(f Fault) bool { return f.Kind.stage() == at && f.means(c) })
	if i < 0 {
		return Fault{}
	}
	fault := m.faults[i]
	if fault.Times == 1 {
		m.faults = slices.Delete(m.faults, i, i+1)
	} else if fault.Times > 0 {
		m.faults[i].Times--
	}
	return fault
}

func (f Fault) means(c call) bool {
	return (f.Number == 0 || f.Number == c.Number) && (f.On == "" || f.On == c.endpoint) && (f.OrderID == "" || f.OrderID == c.orderID)
}

// refuseByFault answers before the key layer. docs.stripe.com/error-low-level: "rate limiters run before the API's
// idempotency layer", so the same key can succeed later.
func (m *Machine) refuseByFault(c *call) *Response {
	switch m.takeFault(*c, door).Kind { //nolint:exhaustive // takeFault returns only kinds of this stage.
	case LoseAnswerBeforeEffect:
		return &Response{Lost: true}
	case Unauthorized:
		return refusal(401, Error{Type: "invalid_request_error", Message: "Invalid API Key provided."})
	case Forbidden:
		return refusal(403, Error{Type: "invalid_request_error", Message: "The provided key does not have the required permissions."})
	case RateLimited:
		return refusal(429, Error{Type: "invalid_request_error", Code: "rate_limit", Message: "Request rate limit exceeded."})
	case LockTimeout:
		return lockTimeout()
	case KeyInUse:
		return keyInUse()
	case Unavailable:
		return refusal(503, Error{Type: "api_error", Message: "Stripe is unavailable. This is a pretend fault."})
	}
	return nil
}

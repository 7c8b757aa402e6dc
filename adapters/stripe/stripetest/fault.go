package stripetest

import (
	"cmp"
	"slices"
	"time"
)

// Fault is something that goes wrong. It is data, so that machines with faults can be
// copied and compared.
type Fault struct {
	Kind FaultKind
	// Number is the Call.Number of the only call that the fault is for, and after which
	// it is removed; 0 means every call.
	Number  int
	On      Endpoint      // Empty means every endpoint.
	OrderID string        // Metadata orderId, also of the intent that a path names. Empty means every order.
	Times   int           // 0 means once; a negative number means every time.
	Delay   time.Duration // For Latency and SlowSuccess.
}

// FaultKind says what goes wrong.
type FaultKind string

// The faults. The response of a fault before the execution is not stored under the key. A
// request has at most one fault of each stage.
const (
	LoseRequest  FaultKind = "lose_request" // The request never arrives.
	Unauthorized FaultKind = "unauthorized" // 401.
	Forbidden    FaultKind = "forbidden"    // 403, as for a restricted key.
	RateLimited  FaultKind = "rate_limited" // 429, before the key layer.
	LockTimeout  FaultKind = "lock_timeout" // 429, the object is in use.
	KeyInUse     FaultKind = "key_in_use"   // 409, as if a request with the same key were executing.
	Unavailable  FaultKind = "unavailable"  // 503.

	ServerErrorBeforeEffect FaultKind = "server_error_before_effect" // 500, stored; nothing has happened.
	ServerErrorAfterEffect  FaultKind = "server_error_after_effect"  // 500, stored; it has happened.
	Decline                 FaultKind = "decline"                    // Every card is declined.
	Latency                 FaultKind = "latency"                    // Delay before the effect.
	SlowSuccess             FaultKind = "slow_success"               // Delay between the effect and the response.

	LoseResponse FaultKind = "lose_response" // The response is lost, also if it is a replay.
	Garbage      FaultKind = "garbage"       // The response's body is truncated.
)

// Fail adds a fault.
func (m *Machine) Fail(f Fault) {
	f.Times = max(cmp.Or(f.Times, 1), -1)
	m.faults = append(m.faults, f)
}

// Heal removes every fault.
func (m *Machine) Heal() { m.faults = nil }

// takeFault uses one fault of these kinds. It returns the zero Fault if there is none.
func (m *Machine) takeFault(c *call, kinds ...FaultKind) Fault {
	i := slices.IndexFunc(m.faults, func(f Fault) bool {
		return slices.Contains(kinds, f.Kind) && (f.Number == 0 || f.Number == c.Number) &&
			(f.On == "" || f.On == c.op.endpoint) && (f.OrderID == "" || f.OrderID == c.orderID)
	})
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

// endFaults removes the faults of a call that has ended.
func (m *Machine) endFaults(number int) {
	m.faults = slices.DeleteFunc(m.faults, func(f Fault) bool { return f.Number != 0 && f.Number == number })
}

// refuseByFault refuses a request before its key is looked up.
// docs.stripe.com/error-low-level: "rate limiters run before the API's idempotency
// layer", so the same key can succeed later.
func (m *Machine) refuseByFault(c *call) *Response {
	kinds := []FaultKind{LoseRequest, Unauthorized, Forbidden, RateLimited, LockTimeout, KeyInUse, Unavailable}
	switch m.takeFault(c, kinds...).Kind { //nolint:exhaustive // takeFault returns only these
	case LoseRequest:
		if c.op.endpoint == CreateRefund {
			m.late = append(m.late, *c)
		}
		return &Response{Lost: true}
	case Unauthorized:
		return refuse(401, "", "", "Invalid API Key provided.")
	case Forbidden:
		return refuse(403, "", "", "The provided key does not have the required permissions.")
	case RateLimited:
		return refuse(429, "rate_limit", "", "Request rate limit exceeded.")
	case LockTimeout:
		return lockTimeout()
	case KeyInUse:
		return keyInUse()
	case Unavailable:
		return refuse(503, "", "", "Unavailable, by a fault of the Stripe double.")
	}
	return nil
}

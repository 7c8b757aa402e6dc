// Package stripetest is a Stripe double that follows Stripe's rules for PaymentIntents
// and what belongs to them: statuses, test cards, idempotency keys with stored errors,
// object locks and a ledger, as documented for API version 2023-10-16. Payments on
// session, where the customer is present, are not modeled.
//
// Machine is a state machine: time is an argument and it starts no goroutine, so that a
// search can visit every interleaving. Server serves it on 127.0.0.1.
//
// The package knows nothing of orders except the orderId and scope in metadata. It
// refuses live API keys. It also refuses every parameter that it does not model, because
// an ignored one would hide a mistake.
package stripetest

import (
	"maps"
	"slices"
	"time"
)

// Rules are the parts of Stripe's behavior that a test may change. The zero value is
// Stripe as documented.
type Rules struct {
	// Key, if set, is the only valid API key. Otherwise every sk_test_ or rk_test_ key is
	// valid.
	Key string
	// KeyLife is the age at which an idempotency key expires; 0 means 24 h, and a
	// negative value stores no key. docs.stripe.com/api/idempotent_requests: keys may be
	// removed "after they're at least 24 hours old".
	KeyLife time.Duration
	// RefundLag hides younger refunds from lists. Whether Stripe's lists of refunds lag is
	// not documented.
	RefundLag time.Duration
}

// Machine is the state of the Stripe double. It is not safe for concurrent use and starts
// no goroutine.
type Machine struct {
	rules    Rules
	requests RequestID
	intents  []*Intent  // Immutable: a change replaces the pointer, so responses and clones share them.
	disputes []*Dispute // Immutable as well.
	refunds  []*Refund  // Likewise.
	ledger   []Charge
	events   []Event
	keys     map[string]stored
	running  map[Ticket]call
	late     []call          // Refund requests that RollForward executes.
	gone     map[string]bool // Deleted customers and detached payment methods.
	faults   []Fault
}

// Ticket identifies an executing call between Begin and End: the smallest number that no
// other executing call has, so that equal machines have equal tickets. It identifies the
// same call in a Clone.
type Ticket int

type call struct {
	Request
	op       operation
	id       string // That the path names, or ""; for a new refund its intent.
	orderID  string
	number   RequestID
	begun    time.Time
	params   string // The encoded form.
	fault    Fault
	done     bool
	response Response
}

// New returns a Stripe without intents, keys or faults.
func New(rules Rules) *Machine {
	return &Machine{
		rules: rules, keys: map[string]stored{}, running: map[Ticket]call{}, gone: map[string]bool{},
	}
}

// Clone returns an independent copy, with executing calls under the same tickets. It
// copies the maps, but no intent.
func (m *Machine) Clone() *Machine {
	c := *m
	c.intents, c.ledger, c.faults = slices.Clone(m.intents), slices.Clone(m.ledger), slices.Clone(m.faults)
	c.disputes, c.events = slices.Clone(m.disputes), slices.Clone(m.events)
	c.refunds, c.late = slices.Clone(m.refunds), slices.Clone(m.late)
	c.keys, c.running, c.gone = maps.Clone(m.keys), maps.Clone(m.running), maps.Clone(m.gone)
	return &c
}

// Begin accepts a request. If it returns a response, the request is not executed: it was
// refused, replayed or lost. Otherwise the call executes until End, its key is in use and
// its intent is locked.
func (m *Machine) Begin(now time.Time, r Request) (Ticket, *Response) {
	m.requests++
	c := m.route(now, r)
	for _, check := range []func(*Machine, *call) *Response{
		(*Machine).authenticate, (*Machine).refuseByFault, (*Machine).replay, (*Machine).validate, (*Machine).lock,
	} {
		if refusal := check(m, c); refusal != nil {
			response := m.deliver(now, c, *refusal)
			return 0, &response
		}
	}
	c.fault = m.takeFault(c, ServerErrorBeforeEffect, ServerErrorAfterEffect, Decline, Latency, SlowSuccess)
	m.holdKey(c)
	ticket := Ticket(1)
	for _, executing := m.running[ticket]; executing; _, executing = m.running[ticket] {
		ticket++
	}
	m.running[ticket] = *c
	return ticket, nil
}

// Effect executes a call, which is when money moves. A second Effect does nothing.
func (m *Machine) Effect(now time.Time, t Ticket) {
	c, executing := m.running[t]
	if !executing || c.done {
		return
	}
	c.done = true
	if c.fault.Kind != ServerErrorBeforeEffect {
		c.response = c.op.run(m, now, &c)
	} else if c.op.endpoint == CreateRefund {
		m.late = append(m.late, c)
	}
	if c.fault.Kind == ServerErrorBeforeEffect || c.fault.Kind == ServerErrorAfterEffect {
		// Without Stripe-Should-Retry, because Stripe does not know the result.
		c.response = *refuse(500, "", "", "An unknown error occurred, by a fault of the Stripe double.")
	}
	c.response.RequestID = c.number
	m.running[t] = c
}

// End calls Effect, stores the response under the call's key, unlocks the intent and
// returns the response.
func (m *Machine) End(now time.Time, t Ticket) Response {
	m.Effect(now, t)
	c := m.running[t]
	delete(m.running, t)
	m.storeResponse(&c)
	return m.deliver(now, &c, c.response)
}

// Do is Begin, Effect and End at one time.
func (m *Machine) Do(now time.Time, r Request) Response {
	t, refusal := m.Begin(now, r)
	if refusal != nil {
		return *refusal
	}
	return m.End(now, t)
}

// Delays returns how long an executing call has to wait before Effect and between Effect
// and End, because of faults. The caller waits, not the machine.
func (m *Machine) Delays(t Ticket) (beforeEffect, beforeEnd time.Duration) {
	fault := m.running[t].fault
	if fault.Kind == SlowSuccess {
		return 0, fault.Delay
	}
	return fault.Delay, 0
}

// lock refuses a second mutation of an intent while another executes.
// docs.stripe.com/rate-limits (object lock timeouts): 429 with code lock_timeout, worth a
// retry.
func (m *Machine) lock(c *call) *Response {
	for _, other := range m.running {
		if c.Method == post && other.Method == post && c.id != "" && other.id == c.id {
			return lockTimeout()
		}
	}
	return nil
}

// deliver adds the request id and the time to a response, and lets faults lose or
// truncate it.
func (m *Machine) deliver(now time.Time, c *call, response Response) Response {
	response.RequestID, response.At = c.number, now
	kind := m.takeFault(c, LoseResponse, Garbage).Kind
	response.Lost, response.Garbled = response.Lost || kind == LoseResponse, kind == Garbage
	m.endFaults(c.Number)
	return response
}

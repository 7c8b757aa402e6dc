// Package stripetest is a pretend Stripe that obeys Stripe's rules for payment intents: states, test cards, idempotency
// keys with stored errors, object locks and a ledger, as API version 2023-10-16 documents them. Machine is pure: time is an
// argument, and nothing in it runs by itself, so that a search can visit every interleaving. Server puts it behind HTTP on
// 127.0.0.1. It knows nothing of orders beyond the orderId and scope that a client writes into metadata, it refuses live API
// keys, and it refuses every parameter that it does not model rather than ignore it.
package stripetest

import (
	"maps"
	"slices"
	"time"
)

// Rules are the parts of Stripe's behavior that differ between worlds. The zero value is Stripe as documented.
type Rules struct {
	// Key, when set, is the only API key accepted. Otherwise every sk_test_ or rk_test_ key is.
	Key string
	// KeyLife is the age at which an idempotency key is forgotten; 0 means 24 h, and a negative value keeps no key at all.
	// docs.stripe.com/api/idempotent_requests: keys may be removed "after they're at least 24 hours old".
	KeyLife time.Duration
	// ListLag hides intents younger than this from the list. Stripe's list does not lag (its search does): the lag
	// exists for designs that look an order up before they charge it.
	ListLag time.Duration
	// SearchLag hides intents younger than this from the search: less than a minute, an hour in an outage
	// (docs.stripe.com/search).
	SearchLag time.Duration
	// NoCharges is an account whose restricted keys may not read charges.
	NoCharges bool
}

// Machine is the whole of the pretend Stripe. It is not safe for concurrent use, and starts nothing by itself.
type Machine struct {
	rules    Rules
	requests RequestID
	intents  []*Intent // Never changed in place: a change replaces the pointer, so answers and clones share them.
	ledger   []Charge
	keys     map[string]stored
	running  map[Ticket]call
	cards    map[string]Card
	gone     map[string]bool // Customers that are deleted and payment methods that are detached.
	faults   []Fault
}

// Ticket names an executing call between Begin and End: the smallest number that no other executing call has, so that
// equal worlds have equal tickets. It means the same call in a Clone.
type Ticket int

// call is one request on its way through the machine.
type call struct {
	Request
	endpoint Endpoint
	intent   string // The intent of the path, empty for Create, List and Search.
	orderID  string
	number   RequestID
	begun    time.Time
	params   digest
	create   createParams
	confirm  confirmParams
	list     listParams
	search   searchParams
	fault    Fault
	done     bool
	answer   Response
}

// New returns a Stripe without intents, keys or faults.
func New(rules Rules) *Machine {
	return &Machine{
		rules: rules, keys: map[string]stored{}, running: map[Ticket]call{}, cards: map[string]Card{}, gone: map[string]bool{},
	}
}

// Clone returns an independent copy, with executing calls under the same tickets. It costs one copy of the indexes.
func (m *Machine) Clone() *Machine {
	c := *m
	c.intents, c.ledger, c.faults = slices.Clone(m.intents), slices.Clone(m.ledger), slices.Clone(m.faults)
	c.keys, c.running, c.cards, c.gone = maps.Clone(m.keys), maps.Clone(m.running), maps.Clone(m.cards), maps.Clone(m.gone)
	return &c
}

// Begin accepts a request. A response means that it ended before execution: refused, replayed from its key, or lost. Else
// the call executes: its key is in use and its intent is locked until End.
func (m *Machine) Begin(now time.Time, r Request) (Ticket, *Response) {
	m.requests++
	c := m.route(r)
	c.begun = now
	checks := []func(*call) *Response{m.authenticate, m.refuseByFault, m.replay, m.validate, m.lock}
	for _, check := range checks {
		if refusal := check(&c); refusal != nil {
			answer := m.deliver(c, *refusal)
			return 0, &answer
		}
	}
	c.fault = m.takeFault(c, execution)
	m.holdKey(c)
	ticket := Ticket(1)
	for m.executing(ticket) {
		ticket++
	}
	m.running[ticket] = c
	return ticket, nil
}

// Effect performs what an executing call asks for: this is where money moves. A second Effect does nothing.
func (m *Machine) Effect(now time.Time, t Ticket) {
	c, ok := m.running[t]
	if !ok || c.done {
		return
	}
	c.done = true
	if c.fault.Kind != ServerErrorBeforeEffect {
		c.answer = m.execute(now, c)
	}
	if c.fault.Kind == ServerErrorBeforeEffect || c.fault.Kind == ServerErrorAfterEffect {
		c.answer = serverError()
	}
	c.answer.RequestID = c.number
	m.running[t] = c
}

// End performs the effect if nobody did, stores the answer under the call's key, unlocks the intent and answers.
func (m *Machine) End(now time.Time, t Ticket) Response {
	m.Effect(now, t)
	c := m.running[t]
	delete(m.running, t)
	m.storeAnswer(c)
	return m.deliver(c, c.answer)
}

// Do is Begin, Effect and End at one instant.
func (m *Machine) Do(now time.Time, r Request) Response {
	ticket, refusal := m.Begin(now, r)
	if refusal != nil {
		return *refusal
	}
	return m.End(now, ticket)
}

// Delays returns how long faults want an executing call to wait before its effect and between effect and answer. The
// machine only reports them; whoever owns the clock waits.
func (m *Machine) Delays(t Ticket) (beforeEffect, beforeAnswer time.Duration) {
	switch fault := m.running[t].fault; fault.Kind { //nolint:exhaustive // The other kinds do not wait.
	case Latency:
		return fault.Delay, 0
	case SlowSuccess:
		return 0, fault.Delay
	default:
		return 0, 0
	}
}

func (m *Machine) executing(t Ticket) bool {
	_, ok := m.running[t]
	return ok
}

// lock refuses a second mutation of an intent while another executes.
// docs.stripe.com/rate-limits (object lock timeouts): 429 with code lock_timeout, worth a retry.
func (m *Machine) lock(c *call) *Response {
	for _, other := range m.running {
		if c.Method == post && other.Method == post && c.intent != "" && other.intent == c.intent {
			return lockTimeout()
		}
	}
	return nil
}

func (m *Machine) execute(now time.Time, c call) Response {
	switch c.endpoint {
	case Create:
		return m.createIntent(now, c)
	case Confirm:
		return m.confirmIntent(now, c, m.intent(c.intent), c.confirm)
	case Cancel:
		return m.cancelIntent(m.intent(c.intent), c.Form.Get("cancellation_reason"))
	case Read:
		answer := Response{Status: 200, Intent: m.intent(c.intent)}
		if hasList(c.Form, "expand") {
			answer.Charge = m.latestCharge(answer.Intent)
		}
		return answer
	case List:
		return Response{Status: 200, List: m.list(now, c.list)}
	case Search:
		return Response{Status: 200, List: m.find(now, c.search)}
	}
	return notFound(c)
}

// deliver numbers an answer and lets faults lose or garble it on its way to the client.
func (m *Machine) deliver(c call, answer Response) Response {
	answer.RequestID = c.number
	switch m.takeFault(c, delivery).Kind { //nolint:exhaustive // Only these two happen to an answer on its way.
	case LoseAnswerAfterEffect:
		answer.Lost = true
	case Garbage:
		answer.Garbled = true
	}
	m.faults = slices.DeleteFunc(m.faults, func(f Fault) bool { return f.Number != 0 && f.Number == c.Number })
	return answer
}

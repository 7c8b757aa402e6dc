package stripetest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is a PaymentIntent's status (docs.stripe.com/payments/paymentintents/lifecycle).
// Manual capture and requires_action, which needs a customer on session, are not modeled.
type Status string

// The statuses.
const (
	StatusRequiresPaymentMethod Status = "requires_payment_method"
	StatusRequiresConfirmation  Status = "requires_confirmation"
	StatusProcessing            Status = "processing"
	StatusSucceeded             Status = "succeeded"
	StatusCanceled              Status = "canceled"
)

// Intent is a PaymentIntent at one moment. It is immutable: every change makes another
// Intent.
type Intent struct {
	ID            string
	Amount        int64
	Currency      string
	Customer      string
	PaymentMethod string // Empty again after a decline.
	Status        Status
	Metadata      map[string]string
	LastError     *Error
	LatestCharge  string
	Created       time.Time
}

// OrderID returns the metadata orderId, which ledger and faults use.
func (i *Intent) OrderID() string { return i.Metadata["orderId"] }

// wire is the intent as Stripe sends it (docs.stripe.com/api/payment_intents/object).
func (i *Intent) wire() object {
	o := object{
		"id": i.ID, "object": "payment_intent", "amount": i.Amount, "amount_received": 0, "currency": i.Currency,
		"capture_method": "automatic", "client_secret": i.ID + "_secret_pretend", "created": i.Created.Unix(),
		"status": string(i.Status), "metadata": i.Metadata, "customer": orNull(i.Customer), "livemode": false,
		"latest_charge": orNull(i.LatestCharge), "payment_method": orNull(i.PaymentMethod),
		"last_payment_error": nil, "next_action": nil,
	}
	if i.LastError != nil {
		o["last_payment_error"] = i.LastError.wire()
	}
	if i.Status == StatusSucceeded {
		o["amount_received"] = i.Amount
	}
	return o
}

// Intents returns the current version of every intent, oldest first. They are read-only.
func (m *Machine) Intents() []*Intent { return slices.Clone(m.intents) }

// Intent returns the current version of an intent, or nil.
func (m *Machine) Intent(id string) *Intent {
	if n := number(id); n > 0 && n <= len(m.intents) && m.intents[n-1].ID == id {
		return m.intents[n-1]
	}
	return nil
}

// number is the place of an object among those of its kind, from 1, or 0 for an id that
// no object has.
func number(id string) int {
	_, digits, _ := strings.Cut(id, "_")
	n, _ := strconv.Atoi(digits)
	return n
}

func (m *Machine) replace(old *Intent, set func(*Intent)) *Intent {
	next := *old
	set(&next)
	m.intents[number(old.ID)-1] = &next
	if kind := eventOf(old, &next); kind != "" {
		m.emit(Event{Type: kind, Intent: &next})
	}
	return &next
}

// createIntent creates an intent. docs.stripe.com/payments/paymentintents/lifecycle:
// requires_payment_method without a payment method, else requires_confirmation.
func (m *Machine) createIntent(now time.Time, c *call) Response {
	intent := newIntent(c.Form)
	intent.ID, intent.Created = fmt.Sprintf("pi_%06d", len(m.intents)+1), now
	intent.Status = StatusRequiresPaymentMethod
	if intent.PaymentMethod != "" {
		intent.Status = StatusRequiresConfirmation
	}
	m.intents = append(m.intents, intent)
	if c.Form.Get("confirm") == "true" {
		return m.confirm(now, c, intent)
	}
	return Response{Status: 200, Intent: intent}
}

func (m *Machine) confirmIntent(now time.Time, c *call) Response {
	return m.confirm(now, c, m.Intent(c.id))
}

// confirm attempts the payment. docs.stripe.com/error-codes:
// payment_intent_unexpected_state means that the intent's status is incompatible with the
// operation. The intent is inside the error.
func (m *Machine) confirm(now time.Time, c *call, intent *Intent) Response {
	method := cmp.Or(c.Form.Get("payment_method"), intent.PaymentMethod)
	switch {
	case !confirmable(intent.Status):
		return unexpectedState(intent, "You cannot confirm a PaymentIntent with status %s.", intent.Status)
	case method == "":
		return unexpectedState(intent, "You cannot confirm a PaymentIntent without a payment method.")
	}
	as, _ := cardOf(method)
	if c.fault.Kind == Decline {
		as = declines
	}
	return m.charge(now, c, intent, as, method)
}

// charge asks the card. docs.stripe.com/api/payment_intents/confirm: with off_session the
// customer "can't authenticate", so a bank that wants the customer fails the payment.
func (m *Machine) charge(now time.Time, c *call, intent *Intent, as card, method string) Response {
	switch as { //nolint:exhaustive // every other card declines
	case succeeds:
		charge := m.record(now, intent, Charged, ChargeFailure{}, c)
		return Response{Status: 200, Intent: m.replace(intent, func(i *Intent) {
			i.Status, i.PaymentMethod, i.LatestCharge, i.LastError = StatusSucceeded, method, charge, nil
		})}
	case processing:
		return Response{Status: 200, Intent: m.replace(intent, func(i *Intent) {
			i.Status, i.PaymentMethod, i.LastError = StatusProcessing, method, nil
		})}
	}
	failure := declineOf(as, method)
	charge := m.record(now, intent, Declined, chargeFailure(as, failure), c)
	declined := m.replace(intent, func(i *Intent) {
		i.Status, i.PaymentMethod, i.LatestCharge, i.LastError = StatusRequiresPaymentMethod, "", charge, failure
	})
	response := *failure
	response.Intent = declined
	return Response{Status: 402, Error: &response}
}

// cancelIntent cancels an intent. docs.stripe.com/api/payment_intents/cancel: any state
// but succeeded and canceled.
func (m *Machine) cancelIntent(_ time.Time, c *call) Response {
	intent := m.Intent(c.id)
	if !cancelable(intent.Status) {
		return unexpectedState(intent, "You cannot cancel a PaymentIntent with status %s.", intent.Status)
	}
	return Response{Status: 200, Intent: m.cancel(intent)}
}

func (m *Machine) cancel(i *Intent) *Intent {
	return m.replace(i, func(i *Intent) { i.Status = StatusCanceled })
}

func confirmable(s Status) bool {
	return s == StatusRequiresPaymentMethod || s == StatusRequiresConfirmation
}

func cancelable(s Status) bool { return s != StatusSucceeded && s != StatusCanceled }

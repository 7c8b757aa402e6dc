package stripetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is a PaymentIntent's status (docs.stripe.com/payments/paymentintents/lifecycle).
// Manual capture is not modeled.
type Status string

// The statuses.
const (
	StatusRequiresPaymentMethod Status = "requires_payment_method"
	StatusRequiresConfirmation  Status = "requires_confirmation"
	StatusRequiresAction        Status = "requires_action"
	StatusProcessing            Status = "processing"
	StatusSucceeded             Status = "succeeded"
	StatusCanceled              Status = "canceled"
)

// Intent is a PaymentIntent at one moment. It is immutable: every change makes another
// Intent.
type Intent struct {
	ID                 string
	Account            string // See call.account.
	Amount             int64
	Currency           string
	Customer           string
	PaymentMethod      string // Empty again after a decline.
	Status             Status
	Metadata           map[string]string
	Description        string
	LastError          *Error
	LatestCharge       string
	Created            time.Time
	CaptureMethod      string
	CancellationReason string
	MayRedirect        bool // A payment method that it accepts may redirect the customer.
	Automatic          bool // automatic_payment_methods, the default since 2023-08-16.
}

// OrderID returns the metadata orderId, which ledger and faults use.
func (i *Intent) OrderID() string { return i.Metadata["orderId"] }

// Intents returns the current version of every intent, oldest first. They are read-only.
func (m *Machine) Intents() []*Intent { return slices.Clone(m.intents) }

// Intent returns the current version of an intent, or nil.
func (m *Machine) Intent(id string) *Intent {
	if n := position(id); n >= 0 && n < len(m.intents) && m.intents[n].ID == id {
		return m.intents[n]
	}
	return nil
}

// position is the index of an intent in Machine.intents according to its id, or -1.
func position(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "pi_"))
	if err != nil {
		return -1
	}
	return n - 1
}

// change replaces an intent by its next version, which it returns.
func (m *Machine) change(old *Intent, set func(*Intent)) *Intent {
	next := *old
	set(&next)
	m.intents[position(old.ID)] = &next
	if kind := eventOf(old, &next); kind != "" {
		m.emit(Event{Type: kind, Intent: &next})
	}
	return &next
}

// createIntent creates an intent. docs.stripe.com/payments/paymentintents/lifecycle:
// requires_payment_method without a payment method, else requires_confirmation.
func (m *Machine) createIntent(now time.Time, c *call) Response {
	intent := c.create.intent
	intent.ID, intent.Account, intent.Created = fmt.Sprintf("pi_%06d", len(m.intents)+1), c.account(), now
	intent.Status = StatusRequiresPaymentMethod
	if intent.PaymentMethod != "" {
		intent.Status = StatusRequiresConfirmation
	}
	m.intents = append(m.intents, &intent)
	if c.create.confirm {
		return m.confirmIntent(now, c, &intent, c.create.confirmParams)
	}
	return Response{Status: 200, Intent: &intent}
}

// confirmIntent attempts the payment. docs.stripe.com/error-codes:
// payment_intent_unexpected_state means that the intent's status is incompatible with the
// operation. The intent is inside the error.
func (m *Machine) confirmIntent(now time.Time, c *call, intent *Intent, p confirmParams) Response {
	method := p.method
	if method == "" {
		method = intent.PaymentMethod
	}
	switch {
	case intent.Status == StatusSucceeded:
		return unexpectedState(intent, "You cannot confirm this PaymentIntent because it has already succeeded "+
			"after being previously confirmed.")
	case !confirmable(intent.Status):
		return unexpectedState(intent,
			fmt.Sprintf("You cannot confirm this PaymentIntent because it has a status of %s.", intent.Status))
	case method == "":
		return unexpectedState(intent,
			"You cannot confirm this PaymentIntent because it's missing a payment method.")
	}
	card, _ := m.cardOf(method)
	if c.fault.Kind == Decline {
		card = Declines
	}
	return m.charge(now, c, intent, card.session(p.offSession), method, p.offSession || p.errorOnAction)
}

// charge asks the card. docs.stripe.com/api/payment_intents/confirm: with off_session the
// customer "can't authenticate", so a bank that wants the customer fails the payment; on
// session it moves to requires_action.
func (m *Machine) charge(
	now time.Time, c *call, intent *Intent, card Card, method string, failOnAction bool,
) Response {
	switch {
	case card == Succeeds:
		charge := m.record(now, intent, Charged, ChargeFailure{}, c)
		return Response{Status: 200, Intent: m.change(intent, func(i *Intent) {
			i.Status, i.PaymentMethod, i.LatestCharge, i.LastError = StatusSucceeded, method, charge, nil
		})}
	case card == Processing:
		return Response{Status: 200, Intent: m.change(intent, func(i *Intent) {
			i.Status, i.PaymentMethod, i.LastError = StatusProcessing, method, nil
		})}
	case card == NeedsCustomer && !failOnAction:
		return Response{Status: 200, Intent: m.change(intent, func(i *Intent) {
			i.Status, i.PaymentMethod, i.LastError = StatusRequiresAction, method, nil
		})}
	}
	failure := declineOf(card, method)
	charge := m.record(now, intent, Declined, chargeFailure(card, failure), c)
	declined := m.change(intent, func(i *Intent) {
		i.Status, i.PaymentMethod, i.LatestCharge, i.LastError = StatusRequiresPaymentMethod, "", charge, failure
	})
	response := *failure
	response.Intent = declined
	return Response{Status: 402, ShouldRetry: "false", Error: &response}
}

// cancelIntent cancels an intent. docs.stripe.com/api/payment_intents/cancel: any state
// but succeeded and canceled.
func (m *Machine) cancelIntent(intent *Intent, reason string) Response {
	if !cancelable(intent.Status) {
		return unexpectedState(intent,
			fmt.Sprintf("You cannot cancel this PaymentIntent because it has a status of %s.", intent.Status))
	}
	return Response{Status: 200, Intent: m.change(intent, func(i *Intent) {
		i.Status, i.CancellationReason = StatusCanceled, reason
	})}
}

func confirmable(s Status) bool {
	return s == StatusRequiresPaymentMethod || s == StatusRequiresConfirmation || s == StatusRequiresAction
}

func cancelable(s Status) bool { return s != StatusSucceeded && s != StatusCanceled }

// list returns a page, newest first (docs.stripe.com/api/payment_intents/list).
func (m *Machine) list(now time.Time, p listParams) *Page {
	page := Page{}
	older := m.intents
	if p.after != "" {
		older = m.intents[:position(p.after)]
	}
	for _, intent := range slices.Backward(older) {
		late := m.rules.ListLag > 0 && now.Sub(intent.Created) < m.rules.ListLag
		switch {
		case late || !p.shows(intent):
			continue
		case len(page.Intents) == p.limit:
			page.More = true
			return &page
		}
		page.Intents = append(page.Intents, intent)
		if p.charges {
			page.Charges = append(page.Charges, m.copyOfCharge(intent))
		}
	}
	return &page
}

// shows reports whether a list may show the intent. created[gte] is inclusive,
// created[lt] is not.
func (p listParams) shows(i *Intent) bool {
	created := i.Created.Unix()
	return i.Account == p.account && (p.customer == "" || p.customer == i.Customer) &&
		created >= p.from && (p.before == 0 || created < p.before)
}

func unexpectedState(intent *Intent, message string) Response {
	r := refusal(400, Error{
		Type: "invalid_request_error", Code: "payment_intent_unexpected_state", Message: message, Intent: intent,
	})
	r.ShouldRetry = "false"
	return *r
}

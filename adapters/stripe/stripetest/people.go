package stripetest

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoIntent means that no intent has the id.
var ErrNoIntent = errors.New("PaymentIntent not found")

// ErrLocked means that an executing request holds the intent's lock.
var ErrLocked = errors.New("PaymentIntent locked by an executing request")

// StateError means that the intent's status does not allow a change by a person or the
// bank.
type StateError struct {
	ID     string
	Status Status
}

// Error names the intent and its status.
func (e *StateError) Error() string {
	return fmt.Sprintf("unexpected status of PaymentIntent %s: %s", e.ID, e.Status)
}

// CancelInDashboard cancels an intent as an operator can, in the statuses in which the
// API can. It returns ErrNoIntent, ErrLocked or a *StateError.
func (m *Machine) CancelInDashboard(_ time.Time, id string) error {
	intent, err := m.unlocked(id, cancelable)
	if err != nil {
		return err
	}
	m.cancelIntent(intent, "requested_by_customer")
	return nil
}

// EditInDashboard changes an intent's description as an operator can, in any status. This
// clears its last error. docs.stripe.com/api/payment_intents/object: last_payment_error
// "will be cleared if the PaymentIntent is later updated for any reason". It returns
// ErrNoIntent or ErrLocked.
func (m *Machine) EditInDashboard(_ time.Time, id string) error {
	intent, err := m.unlocked(id, func(Status) bool { return true })
	if err != nil {
		return err
	}
	m.change(intent, func(i *Intent) { i.Description, i.LastError = "edited", nil })
	return nil
}

// DeleteCustomer deletes a customer, as an operator or the API can. From then on,
// creating or confirming an intent for the customer is refused.
func (m *Machine) DeleteCustomer(id string) { m.gone[id] = true }

// DetachMethod detaches a payment method from its customer.
// docs.stripe.com/api/payment_methods/detach: "Detachment is permanent and irreversible —
// once detached, a PaymentMethod can no longer be used for payments".
func (m *Machine) DetachMethod(id string) { m.gone[id] = true }

// CustomerPays makes an unpaid intent succeed, as if the customer used another card or
// authenticated the payment. It returns ErrNoIntent, ErrLocked or a *StateError.
func (m *Machine) CustomerPays(now time.Time, id string) error {
	intent, err := m.unlocked(id, confirmable)
	if err != nil {
		return err
	}
	m.charge(now, &call{}, intent, Succeeds, "pm_card_visa", false)
	return nil
}

// Settle ends the processing of an intent: it is paid, or declined. It returns
// ErrNoIntent, ErrLocked or a *StateError.
func (m *Machine) Settle(now time.Time, id string, ok bool) error {
	intent, err := m.unlocked(id, func(s Status) bool { return s == StatusProcessing })
	if err != nil {
		return err
	}
	card := Succeeds
	if !ok {
		card = Declines
	}
	m.charge(now, &call{}, intent, card, intent.PaymentMethod, true)
	return nil
}

// unlocked returns an intent that no request has locked and whose status is allowed.
func (m *Machine) unlocked(id string, allowed func(Status) bool) (*Intent, error) {
	intent := m.Intent(id)
	switch {
	case intent == nil:
		return nil, ErrNoIntent
	case m.lock(&call{Request: Request{Method: post}, intent: id}) != nil:
		return nil, ErrLocked
	case !allowed(intent.Status):
		return nil, &StateError{ID: id, Status: intent.Status}
	}
	return intent, nil
}

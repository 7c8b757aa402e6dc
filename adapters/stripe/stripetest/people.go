package stripetest

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotAllowed means that a person or the bank cannot make this change: the object does
	// not exist, or its status does not allow it.
	ErrNotAllowed = errors.New("change not allowed")
	// ErrLocked means that an executing request holds the intent's lock.
	ErrLocked = errors.New("PaymentIntent locked by an executing request")
)

// CancelInDashboard cancels an intent as a person can, in the statuses in which the API
// can.
func (m *Machine) CancelInDashboard(_ time.Time, id string) error {
	return m.change(id, cancelable, func(i *Intent) { m.cancel(i) })
}

// EditInDashboard edits an intent as a person can, in any status, which clears its last
// error. docs.stripe.com/api/payment_intents/object: last_payment_error "will be
// cleared if the PaymentIntent is later updated for any reason".
func (m *Machine) EditInDashboard(_ time.Time, id string) error {
	anyStatus := func(Status) bool { return true }
	return m.change(id, anyStatus, func(i *Intent) { m.replace(i, func(i *Intent) { i.LastError = nil }) })
}

// DeleteCustomer deletes a customer, as a person or the API can. From then on,
// creating or confirming an intent for the customer is refused.
func (m *Machine) DeleteCustomer(id string) { m.gone[id] = true }

// DetachMethod detaches a payment method from its customer.
// docs.stripe.com/api/payment_methods/detach: "Detachment is permanent and irreversible —
// once detached, a PaymentMethod can no longer be used for payments".
func (m *Machine) DetachMethod(id string) { m.gone[id] = true }

// CustomerPays makes an unpaid intent succeed, as if the customer used another card or
// authenticated the payment.
func (m *Machine) CustomerPays(now time.Time, id string) error {
	return m.change(id, confirmable, func(i *Intent) { m.charge(now, &call{}, i, succeeds, "pm_card_visa") })
}

// Settle ends the processing of an intent: it is paid, or declined.
func (m *Machine) Settle(now time.Time, id string, ok bool) error {
	as := succeeds
	if !ok {
		as = declines
	}
	return m.change(id, is(StatusProcessing), func(i *Intent) { m.charge(now, &call{}, i, as, i.PaymentMethod) })
}

func is(want Status) func(Status) bool { return func(s Status) bool { return s == want } }

// change changes an intent that is unlocked.
func (m *Machine) change(id string, allowed func(Status) bool, how func(*Intent)) error {
	intent, err := m.unlocked(id, allowed)
	if err == nil {
		how(intent)
	}
	return err
}

func (m *Machine) unlocked(id string, allowed func(Status) bool) (*Intent, error) {
	intent := m.Intent(id)
	switch {
	case intent == nil:
		return nil, fmt.Errorf("%w: no PaymentIntent %q", ErrNotAllowed, id)
	case m.lock(&call{Request: Request{Method: post}, id: id}) != nil:
		return nil, ErrLocked
	case !allowed(intent.Status):
		return nil, fmt.Errorf("%w: PaymentIntent %s is %s", ErrNotAllowed, id, intent.Status)
	}
	return intent, nil
}

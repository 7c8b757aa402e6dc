package order

import "fmt"

// IntentID is the provider's id of an intent.
type IntentID string

// Intent is the provider's object for one charge of one order, as the provider last
// described it. It succeeds at most once: confirming it again after it succeeded is
// refused, at any age.
type Intent struct {
	ID          IntentID
	State       IntentState
	Total       Money
	OrderID     ID
	Scope       Scope
	Fingerprint Fingerprint // of the order that it was prepared for
	Mode        Mode
	Failure     Failure
}

// Mode is the provider's mode: real cards or test cards.
type Mode string

// The modes of an intent.
const (
	LiveMode Mode = "live" // real cards are charged
	TestMode Mode = "test" // only test cards are accepted, and no money moves
)

// IntentState is the state of an intent at the provider, in its words.
type IntentState string

// The states of an intent.
const (
	NeedsMethod       IntentState = "requires_payment_method" // it was declined, or has no payment method
	NeedsConfirmation IntentState = "requires_confirmation"
	NeedsAction       IntentState = "requires_action"
	Processing        IntentState = "processing"
	IntentCanceled    IntentState = "canceled"
	Succeeded         IntentState = "succeeded"
)

// Failure holds the provider's codes for the intent's last failed confirmation. It is
// empty if none failed.
type Failure struct {
	Code        string // such as "card_declined"
	DeclineCode string // such as "insufficient_funds"
}

const authenticationRequired = "authentication_required"

// needsAuthentication reports whether the bank declined only because the customer has to
// authenticate.
func (f Failure) needsAuthentication() bool {
	return f.Code == authenticationRequired || f.DeclineCode == authenticationRequired
}

// String returns the decline code, or the error code if there is no decline code.
func (f Failure) String() string {
	if f.DeclineCode != "" {
		return f.DeclineCode
	}
	return f.Code
}

// Outcome is the result of an order. Failure is a provider code, never free text.
type Outcome struct {
	Status  Status
	Intent  IntentID
	Failure string
}

// OutcomeOf returns the outcome of an intent, wherever it came from: Confirm, Read or a
// webhook. settled is false while the intent still waits for its first confirmation.
//
// A failed off-session payment leaves the intent in NeedsMethod, both if the bank
// declined and if the bank only wants the customer to authenticate (support.stripe.com,
// manual confirmation for off-session payments requiring SCA). The second is not a
// decline. Only the failure's code distinguishes them.
func OutcomeOf(i Intent) (o Outcome, settled bool) {
	switch i.State {
	case Succeeded:
		return Outcome{Status: Paid, Intent: i.ID}, true
	case Processing:
		return Outcome{Status: Pending, Intent: i.ID}, true
	case NeedsAction:
		return Outcome{Status: ActionRequired, Intent: i.ID, Failure: i.Failure.String()}, true
	case IntentCanceled:
		return Outcome{Status: Canceled, Intent: i.ID, Failure: i.Failure.String()}, true
	case NeedsMethod:
		if i.Failure == (Failure{}) {
			return Outcome{}, false
		}
		status := Declined
		if i.Failure.needsAuthentication() {
			status = ActionRequired
		}
		return Outcome{Status: status, Intent: i.ID, Failure: i.Failure.String()}, true
	case NeedsConfirmation:
		return Outcome{}, false
	}
	return Outcome{}, false
}

// MismatchError reports an intent that belongs to something else. Confirming it would
// charge the wrong amount or customer.
type MismatchError struct {
	Intent    IntentID
	Field     string
	Got, Want string
}

// Error names the field with its actual and its expected value.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("intent %s: %s is %q, want %q", e.Intent, e.Field, e.Got, e.Want)
}

// Verify returns a *MismatchError unless the intent belongs to the order.
func Verify(i Intent, scope Scope, id ID, total Money) error {
	for _, f := range [...]struct{ field, got, want string }{
		{"orderId", string(i.OrderID), string(id)},
		{"scope", string(i.Scope), string(scope)},
		{"total", i.Total.String(), total.String()},
	} {
		if f.got != f.want {
			return &MismatchError{Intent: i.ID, Field: f.field, Got: f.got, Want: f.want}
		}
	}
	return nil
}

// Unrecorded returns the outcome of an order's intent that a record in this status should
// show and does not. An intent that was declined, or that waits for the customer, may
// pass through other states before it is paid; these have no transition and are skipped.
// A paid order that is not paid at the provider is never skipped: Settle returns its
// *TransitionError.
func Unrecorded(now Status, i Intent) (o Outcome, found bool) {
	o, settled := OutcomeOf(i)
	if !settled || now == o.Status || now.Charged() && o.Status == Paid {
		return o, false
	}
	return o, now.Charged() || o.Status == Paid || now.Transition(o.Status) == nil
}

package order

import "fmt"

// IntentID names an intent at the payment provider.
type IntentID string

// Intent is one intention to charge one order, as the provider last described it. It succeeds once, for ever:
// confirming it again after it succeeded is refused, at any age.
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

// Mode tells real money from pretend money.
type Mode string

// The modes of an intent.
const (
	LiveMode Mode = "live" // real cards are charged
	TestMode Mode = "test" // only test cards are charged, and no money moves
)

// IntentState is how far an intent is.
type IntentState string

// The states of an intent.
const (
	NeedsMethod       IntentState = "needs_method" // it was declined, or it never had a payment method
	NeedsConfirmation IntentState = "needs_confirmation"
	NeedsAction       IntentState = "needs_action"
	Processing        IntentState = "processing"
	IntentCanceled    IntentState = "canceled"
	Succeeded         IntentState = "succeeded"
)

// Failure is why an intent's last confirmation did not succeed, in the provider's codes; empty if it has not failed.
type Failure struct {
	Code        string // such as "card_declined"
	DeclineCode string // such as "insufficient_funds"
}

const authenticationRequired = "authentication_required"

// wantsCustomer reports whether the bank refused only because the customer was not there.
func (f Failure) wantsCustomer() bool {
	return f.Code == authenticationRequired || f.DeclineCode == authenticationRequired
}

// String is the more telling of the two codes.
func (f Failure) String() string {
	if f.DeclineCode != "" {
		return f.DeclineCode
	}
	return f.Code
}

// Outcome is what an order settles to. Failure is a code, never a sentence.
type Outcome struct {
	Status  Status
	Intent  IntentID
	Failure string
}

// OutcomeOf reads an intent; whoever hears of one, from Confirm, Read or a webhook, decides with this. settled is
// false while the intent still waits for its first confirmation.
//
// A refusal off session leaves the intent in NeedsMethod, whether the bank said no or only wants the customer
// (support.stripe.com, manual confirmation for off-session payments requiring SCA). Telling a customer "declined" in
// the second case is a lie, and afterwards the status alone cannot tell them apart: the failure's code can.
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
		if i.Failure.wantsCustomer() {
			status = ActionRequired
		}
		return Outcome{Status: status, Intent: i.ID, Failure: i.Failure.String()}, true
	case NeedsConfirmation:
		return Outcome{}, false
	}
	return Outcome{}, false
}

// MismatchError is an intent that was made for something else. Confirming it would charge the wrong sum or customer.
type MismatchError struct {
	Intent    IntentID
	Field     string
	Got, Want string
}

// Error names the field, what it is and what it should be.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("intent %s: %s is %q, want %q", e.Intent, e.Field, e.Got, e.Want)
}

// verify compares an intent with the order that it is used for.
func verify(i Intent, scope Scope, id ID, total Money) error {
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

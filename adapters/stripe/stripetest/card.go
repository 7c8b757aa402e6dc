package stripetest

import (
	"slices"
	"strings"
)

// Card says what happens when a payment method is charged.
type Card string

// What cards do. A declined card has the name of its decline code
// (docs.stripe.com/declines/codes).
const (
	Succeeds          Card = "succeeds"
	Declines          Card = "generic_decline"
	InsufficientFunds Card = "insufficient_funds"
	LostCard          Card = "lost_card"
	ExpiredCard       Card = "expired_card"
	NeedsCustomer     Card = "authentication_required" // The bank requires authentication.
	Processing        Card = "processing"              // The payment takes days: see Machine.Settle.
	DeclinesUncoded   Card = "uncoded"                 // The error has a type, but no code.
	Blocked           Card = "fraudulent"              // Radar blocks the payment.
)

// Card makes a payment method act as this card from now on, whatever its name is.
func (m *Machine) Card(method string, card Card) { m.cards[method] = card }

// cardOf returns what a payment method does, and whether it exists. Names with the prefix
// pm_card_ or pm_usBankAccount_ are Stripe's test names, and only those that are modeled
// exist: a misspelled one must not become a card that succeeds. Any other pm_ id is a
// saved card that succeeds.
func (m *Machine) cardOf(method string) (Card, bool) {
	if card, ok := m.cards[method]; ok {
		return card, true
	}
	name, isMethod := strings.CutPrefix(method, "pm_")
	if test, ok := strings.CutPrefix(name, "card_"); ok {
		return testCard(test)
	}
	if test, ok := strings.CutPrefix(name, "usBankAccount_"); ok {
		return Processing, test == "processing" // docs.stripe.com/payments/ach-direct-debit
	}
	return Succeeds, isMethod && isWord(name)
}

// testCard returns what a test payment method of docs.stripe.com/testing does. Disputes
// and refunds come after the payment, which succeeds.
func testCard(name string) (Card, bool) {
	switch strings.TrimPrefix(name, "visa_") {
	case "visa", "debit", "mastercard", "mastercard_debit", "mastercard_prepaid", "amex", "discover", "diners",
		"jcb", "unionpay", "createDispute", "createDisputeProductNotReceived", "createDisputeInquiry",
		"createMultipleDisputes", "pendingRefund", "refundFail":
		return Succeeds, true
	case "chargeDeclined", "chargeCustomerFail":
		return Declines, true
	case "chargeDeclinedInsufficientFunds":
		return InsufficientFunds, true
	case "chargeDeclinedLostCard":
		return LostCard, true
	case "chargeDeclinedStolenCard":
		return "stolen_card", true
	case "chargeDeclinedExpiredCard":
		return ExpiredCard, true
	case "chargeDeclinedIncorrectCvc":
		return "incorrect_cvc", true
	case "chargeDeclinedProcessingError":
		return "processing_error", true
	case "chargeDeclinedVelocityLimitExceeded":
		return "card_velocity_exceeded", true
	case "radarBlock", "riskLevelHighest":
		return Blocked, true
	case "authenticationRequired", "threeDSecure2Required", "threeDSecureRequired":
		return NeedsCustomer, true
	}
	return Succeeds, false
}

// declineOf is the card_error of a card that does not pay. docs.stripe.com/error-codes:
// most declines have the code card_declined and the reason in decline_code; some reasons
// are codes. docs.stripe.com/api/errors: type is always set, code only "for some errors
// that could be handled programmatically".
func declineOf(card Card, method string) *Error {
	e := Error{
		Type: "card_error", Code: "card_declined", DeclineCode: string(card),
		Message: "Your card was declined.", PaymentMethod: method,
	}
	if slices.Contains([]Card{ExpiredCard, NeedsCustomer, "incorrect_cvc", "processing_error"}, card) {
		e.Code = string(card)
	}
	if card == DeclinesUncoded {
		e.Code, e.DeclineCode = "", ""
	}
	return &e
}

package stripetest

import (
	"slices"
	"strings"
)

// card says what happens when a payment method is charged. A declined one has the name of
// its decline code (docs.stripe.com/declines/codes).
type card string

const (
	succeeds        card = "succeeds"
	declines        card = "generic_decline"
	expired         card = "expired_card"
	needsCustomer   card = "authentication_required" // The bank requires authentication.
	processing      card = "processing"              // The payment takes days: see Machine.Settle.
	declinesUncoded card = "uncoded"                 // The error has a type, but no code.
	blocked         card = "fraudulent"              // Radar blocks the payment.
)

// cardOf returns what a payment method does, and whether it exists. Names with the prefix
// pm_card_ or pm_usBankAccount_ are Stripe's test names, and only those that are modeled
// exist: a misspelled one must not become a card that succeeds. Any other pm_ id is a
// saved card that succeeds.
func cardOf(method string) (card, bool) {
	name, isMethod := strings.CutPrefix(method, "pm_")
	if test, ok := strings.CutPrefix(name, "card_"); ok {
		return testCard(test)
	}
	if test, ok := strings.CutPrefix(name, "usBankAccount_"); ok {
		return processing, test == "processing" // docs.stripe.com/payments/ach-direct-debit
	}
	return succeeds, isMethod && isWord(name)
}

// testCard returns what a test payment method of docs.stripe.com/testing does. Disputes
// and refunds come after the payment, which succeeds.
func testCard(name string) (card, bool) {
	switch strings.TrimPrefix(name, "visa_") {
	case "visa", "debit", "mastercard", "mastercard_debit", "mastercard_prepaid", "amex", "discover", "diners",
		"jcb", "unionpay", "createDispute", "createDisputeProductNotReceived", "createDisputeInquiry",
		"createMultipleDisputes", "pendingRefund", "refundFail":
		return succeeds, true
	case "chargeDeclined", "chargeCustomerFail":
		return declines, true
	case "chargeDeclinedInsufficientFunds":
		return "insufficient_funds", true
	case "chargeDeclinedLostCard":
		return "lost_card", true
	case "chargeDeclinedStolenCard":
		return "stolen_card", true
	case "chargeDeclinedExpiredCard":
		return expired, true
	case "chargeDeclinedIncorrectCvc":
		return "incorrect_cvc", true
	case "chargeDeclinedProcessingError":
		return "processing_error", true
	case "chargeDeclinedVelocityLimitExceeded":
		return "card_velocity_exceeded", true
	case "radarBlock", "riskLevelHighest":
		return blocked, true
	case "authenticationRequired", "threeDSecure2Required", "threeDSecureRequired":
		return needsCustomer, true
	case "chargeDeclinedUncoded": // No name of Stripe's: such declines are documented, and have none.
		return declinesUncoded, true
	}
	return succeeds, false
}

// declineOf is the card_error of a card that does not pay. docs.stripe.com/error-codes:
// most declines have the code card_declined and the reason in decline_code; some reasons
// are codes. docs.stripe.com/api/errors: type is always set, code only "for some errors
// that could be handled programmatically".
func declineOf(c card, method string) *Error {
	e := Error{
		Type: "card_error", Code: "card_declined", DeclineCode: string(c),
		Message: "Your card was declined.", PaymentMethod: method,
	}
	if slices.Contains([]card{expired, needsCustomer, "incorrect_cvc", "processing_error"}, c) {
		e.Code = string(c)
	}
	if c == declinesUncoded {
		e.Code, e.DeclineCode = "", ""
	}
	return &e
}

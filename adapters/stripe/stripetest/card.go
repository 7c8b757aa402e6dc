package stripetest

import "strings"

// Card says what happens when a payment method is charged.
type Card string

// What cards do. A declined card has the name of its decline code
// (docs.stripe.com/declines/codes).
const (
	Succeeds          Card = "succeeds"
	Declines          Card = "generic_decline"
	InsufficientFunds Card = "insufficient_funds"
	LostCard          Card = "lost_card"
	StolenCard        Card = "stolen_card"
	ExpiredCard       Card = "expired_card"
	IncorrectCVC      Card = "incorrect_cvc"
	ProcessingError   Card = "processing_error"
	NeedsCustomer     Card = "authentication_required" // The bank requires authentication.
	Processing        Card = "processing"              // The payment takes days: see Machine.Settle.
	DeclinesUncoded   Card = "uncoded"                 // The error has a type, but no code.
	VelocityExceeded  Card = "card_velocity_exceeded"
	Blocked           Card = "fraudulent" // Radar blocks the payment.

	// These require authentication if the payment is on session.
	SetUpForOffSession Card = "set_up_for_off_session"
	FundlessOffSession Card = "insufficient_funds_off_session"
)

// Card makes a payment method act as this card from now on, whatever its name is.
func (m *Machine) Card(method string, card Card) { m.cards[method] = card }

// cardOf returns what a payment method does, and whether it exists. Names with the prefix
// pm_card_ or pm_usBankAccount_ are Stripe's test names, and only those that are modeled
// exist. Any other pm_ id is a saved card that succeeds.
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

// testCard returns what a test payment method of docs.stripe.com/testing does. Disputes,
// refunds and balances come after the payment, which succeeds. Where "Radar might block
// it depending on your settings", the highest risk is blocked, as it is by default.
func testCard(name string) (Card, bool) {
	if reason, declines := strings.CutPrefix(strings.TrimPrefix(name, "visa_"), "chargeDeclined"); declines {
		return declinedBy(reason)
	}
	switch name {
	case "visa", "visa_debit", "mastercard", "mastercard_debit", "mastercard_prepaid",
		"amex", "discover", "diners", "jcb", "unionpay",
		"visa_cartesBancaires", "mastercard_cartesBancaires",
		"visa_debit_eftposAuCoBranded", "mastercard_debit_eftposAuCoBranded",
		"riskLevelElevated", "cvcCheckFail", "cvcCheckFailElevatedRisk", // without a CVC or an address nothing is checked
		"avsZipFail", "avsZipFailElevatedRisk", "avsLine1Fail", "avsFail", "avsUnchecked",
		"createDispute", "createDisputeProductNotReceived", "createDisputeInquiry", "createMultipleDisputes",
		"pendingRefund", "refundFail", "bypassPending", "bypassPendingInternational",
		"threeDSecureOptional", "threeDSecureOptionalProcessingError", "amex_threeDSecureNotSupported":
		return Succeeds, true
	case "chargeCustomerFail", "threeDSecureRequiredProcessingError":
		return Declines, true
	case "radarBlock", "riskLevelHighest":
		return Blocked, true
	case "authenticationRequired", "authenticationRequiredOnSetup", // nothing is set up here
		"threeDSecure2Required", "threeDSecureRequired", "threeDSecureRequiredChargeDeclined":
		return NeedsCustomer, true
	case "authenticationRequiredSetupForOffSession":
		return SetUpForOffSession, true
	case "authenticationRequiredChargeDeclinedInsufficientFunds":
		return FundlessOffSession, true
	}
	return Succeeds, isCountry(name)
}

// isCountry reports whether a name has the form of a country's card, such as de, gb_debit
// and th_credit. It does not check that the country has one.
func isCountry(name string) bool {
	if len(name) < 2 || strings.Trim(name[:2], "abcdefghijklmnopqrstuvwxyz") != "" {
		return false
	}
	kind := name[2:]
	return kind == "" || kind == "_credit" || kind == "_debit" || kind == "_mastercard"
}

// declinedBy returns the card for a documented decline. A misspelled one must not become
// a card that succeeds.
func declinedBy(reason string) (Card, bool) {
	card, ok := map[string]Card{
		"": Declines, "InsufficientFunds": InsufficientFunds, "LostCard": LostCard, "StolenCard": StolenCard,
		"ExpiredCard": ExpiredCard, "IncorrectCvc": IncorrectCVC, "ProcessingError": ProcessingError,
		"VelocityLimitExceeded": VelocityExceeded,
	}[reason]
	return card, ok
}

// session is what a card does when it is charged off session, or on session.
func (c Card) session(offSession bool) Card {
	switch {
	case c != SetUpForOffSession && c != FundlessOffSession:
		return c
	case !offSession:
		return NeedsCustomer
	case c == SetUpForOffSession:
		return Succeeds
	}
	return InsufficientFunds
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
	switch card {
	case InsufficientFunds:
		e.Message = "Your card has insufficient funds."
	case ExpiredCard:
		e.Code, e.Message = string(card), "Your card has expired."
	case IncorrectCVC:
		e.Code, e.Message = string(card), "Your card's security code is incorrect."
	case ProcessingError:
		e.Code, e.Message = string(card), "An error occurred while processing your card. Try again in a little bit."
	case NeedsCustomer:
		e.Code, e.Message = string(card), "Your card was declined. This transaction requires authentication."
	case VelocityExceeded:
		e.Message = "Your card was declined for making repeated attempts too frequently " +
			"or exceeding its amount limit."
	case DeclinesUncoded:
		e.Code, e.DeclineCode = "", ""
	case Declines, LostCard, StolenCard, Blocked, Succeeds, Processing, SetUpForOffSession, FundlessOffSession:
	}
	return &e
}

// isWord reports whether s could be the rest of a Stripe id after its prefix.
func isWord(s string) bool {
	const word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	return s != "" && strings.Trim(s, word) == ""
}

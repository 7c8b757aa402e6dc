package stripetest

import "strings"

// Card says what happens when a payment method is charged.
type Card string

// What cards do. The refusals are named by Stripe's decline code (docs.stripe.com/declines/codes).
const (
	Succeeds          Card = "succeeds"
	Declines          Card = "generic_decline"
	InsufficientFunds Card = "insufficient_funds"
	LostCard          Card = "lost_card"
	StolenCard        Card = "stolen_card"
	ExpiredCard       Card = "expired_card"
	IncorrectCVC      Card = "incorrect_cvc"
	ProcessingError   Card = "processing_error"
	NeedsCustomer     Card = "authentication_required" // The bank wants the customer.
	Processing        Card = "processing"              // The bank takes days: see Machine.Settle.
	DeclinesUncoded   Card = "uncoded"                 // The error has a type and no code.
)

// Card makes a payment method behave from now on, instead of as its name says.
func (m *Machine) Card(method string, card Card) { m.cards[method] = card }

// cardOf returns what a payment method does. Test names are those of docs.stripe.com/testing and, for a bank account
// that stays in processing, of docs.stripe.com/payments/ach-direct-debit; any other pm_ id is somebody's saved card.
func (m *Machine) cardOf(method string) (Card, bool) {
	if card, ok := m.cards[method]; ok {
		return card, true
	}
	name, isMethod := strings.CutPrefix(method, "pm_")
	if reason, declines := strings.CutPrefix(strings.Replace(name, "card_visa_", "card_", 1), "card_chargeDeclined"); declines {
		return declinedBy(reason)
	}
	switch name {
	case "card_authenticationRequired":
		return NeedsCustomer, true
	case "usBankAccount_processing":
		return Processing, true
	}
	return Succeeds, isMethod && isWord(name)
}

// declinedBy knows the documented refusals; a misspelt one must not turn into a card that succeeds.
func declinedBy(reason string) (Card, bool) {
	switch reason {
	case "":
		return Declines, true
	case "InsufficientFunds":
		return InsufficientFunds, true
	case "LostCard":
		return LostCard, true
	case "StolenCard":
		return StolenCard, true
	case "ExpiredCard":
		return ExpiredCard, true
	case "IncorrectCvc":
		return IncorrectCVC, true
	case "ProcessingError":
		return ProcessingError, true
	}
	return "", false
}

// refusalOf is the card_error of a card that does not pay. docs.stripe.com/error-codes: most refusals have code
// card_declined and tell the reason in decline_code; some reasons are codes of their own. docs.stripe.com/api/errors: type is
// always there, code only "for some errors that could be handled programmatically".
func refusalOf(card Card, method string) *Error {
	e := Error{Type: "card_error", Code: "card_declined", DeclineCode: string(card), Message: "Your card was declined.", PaymentMethod: method}
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
	case DeclinesUncoded:
		e.Code, e.DeclineCode = "", ""
	case Declines, LostCard, StolenCard, Succeeds, Processing:
	}
	return &e
}

// isWord reports whether s could be the rest of a Stripe id after its prefix.
func isWord(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Package receipt sends one e-mail for each paid order, and for each refund that
// succeeded. Exactly once is impossible: an e-mail service knows no idempotency key and
// cannot be asked whether it sent a message. Like package order it decides with pure
// functions, acts through ports, and imports the standard library alone.
//
// So there are two promises, of which a deployment has one. At most once, the default:
// a send whose result is unknown is doubtful. It is listed and never repeated by itself;
// the provider's own event or a person resolves it. At least once: it is repeated, and
// the customer may get the e-mail twice.
//
// Read receipt.go (what a receipt is), item.go (its statuses), ports.go and process.go
// (the protocol: look up, render, claim, send, record).
package receipt

import (
	"fmt"
	"strings"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// Key names one receipt of an order: Paid, or that of a refund.
type Key string

// Paid is the key of the receipt of the payment.
const Paid Key = "paid"

const refundKey = "refund#"

// OfRefund returns the key of the receipt of a refund, by the producer's id of it.
func OfRefund(id string) Key { return Key(refundKey + id) }

// keyRules describe the valid keys, for error messages.
func keyRules() []string { return []string{`"paid"`, `"refund#" and a refundId`} }

// ParseKey returns the key in s, or an error that names the rule.
func ParseKey(s string) (Key, error) {
	id, refund := strings.CutPrefix(s, refundKey)
	if s == string(Paid) || refund && order.ValidID(id) {
		return Key(s), nil
	}
	return "", fmt.Errorf("receipt %s: want %s", order.Quote(s), strings.Join(keyRules(), " or "))
}

// Refund returns the id of the refund, or "" for the receipt of the payment.
func (k Key) Refund() string {
	id, _ := strings.CutPrefix(string(k), refundKey)
	if id == string(k) {
		return ""
	}
	return id
}

// Request is a receipt to be sent. FromEvent makes it.
type Request struct {
	OrderID order.ID
	Key     Key
	Total   order.Money // of the payment, or of the refund
	Intent  order.IntentID
	At      time.Time // when it was recorded
	Trace   order.Trace
}

// FromEvent returns the receipt that an event of an order asks for. An order.paid wants
// one. A refund.succeeded wants one too. For every other event, wanted is false.
//
// The error is an *order.InvalidError that lists what the event lacks.
func FromEvent(e outbox.Event) (r Request, wanted bool, err error) {
	r = Request{OrderID: e.OrderID, Total: e.Total, Intent: e.Event.Intent, At: e.Event.At, Trace: e.Trace}
	switch e.Event.Type() {
	case "order.paid":
		r.Key = Paid
	case "refund.succeeded":
		r.Key, r.Total.Amount = OfRefund(e.Event.Refund.ID), e.Event.Refund.Amount
	default:
		return Request{}, false, nil
	}
	return r, true, r.validate()
}

func (r Request) validate() error {
	var all []order.Problem
	check := func(ok bool, field, value, want string) {
		if !ok {
			all = append(all, order.Problem{Field: field, Value: value, Want: want})
		}
	}
	_, err := ParseKey(string(r.Key))
	id, currency, intent := string(r.OrderID), string(r.Total.Currency), string(r.Intent)
	check(order.ValidID(id), "orderId", order.Quote(id), order.IDRule)
	check(err == nil, "refundId", order.Quote(r.Key.Refund()), order.IDRule)
	check(order.ValidCurrency(currency), "currency", order.Quote(currency), order.CurrencyRule)
	check(r.Total.Amount > 0, "amount", order.QuoteInt(r.Total.Amount), "more than 0")
	check(order.ValidReference(intent), "paymentIntentId", order.Quote(intent), order.ReferenceRule)
	if len(all) > 0 {
		return &order.InvalidError{Of: "receipt", Problems: all}
	}
	return nil
}

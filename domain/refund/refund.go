// Package refund gives money back. It makes each refund of a producer once, as far as the
// provider allows, and it records what the provider did. Like package order it decides
// with pure functions, acts through ports, and imports the standard library alone.
//
// A refund is harder than a charge. The provider has no unconfirmed refund that could be
// bound before it takes effect, and it forgets idempotency keys after a day. So the
// promise is smaller: a refund of more than half of a charge is never made twice, because
// the provider refuses to give back more than was charged. A smaller one is made twice
// only if a request of ours is executed more than four hours after the provider last
// answered on the same connection.
//
// Read refund.go (what a refund is), account.go (an order's money), ports.go and
// process.go (the protocol: begin, read, mark, create, finish).
package refund

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"orderonce/domain/order"
)

// ID is the producer's id of one refund of an order. At most one refund that counts ever
// exists for it.
type ID string

// Reason is why the money goes back, in the provider's words
// (docs.stripe.com/api/refunds/create).
type Reason string

// The reasons of a refund.
const (
	Duplicate           Reason = "duplicate"
	Fraudulent          Reason = "fraudulent"
	RequestedByCustomer Reason = "requested_by_customer"
)

// Draft is a refund as it was received, before validation.
type Draft struct {
	OrderID, RefundID string
	Amount            int64  // in the units of the order's total
	Currency          string // that of the order, or "" for it
	Reason            string
}

// Request is a valid refund that a producer asks for. Only New makes one.
type Request struct {
	orderID  order.ID
	id       ID
	amount   int64
	currency order.Currency // "" if the producer did not name it
	reason   Reason
}

// New validates a draft. It returns an *order.InvalidError that lists every problem.
func New(d Draft) (Request, error) {
	var all []order.Problem
	check := func(ok bool, field, value, want string) {
		if !ok {
			all = append(all, order.Problem{Field: field, Value: value, Want: want})
		}
	}
	check(order.ValidID(d.OrderID), "orderId", order.Quote(d.OrderID), order.IDRule)
	check(order.ValidID(d.RefundID), "refundId", order.Quote(d.RefundID), order.IDRule)
	check(1 <= d.Amount && d.Amount <= order.MaxUnitAmount, // Begin compares it with what is left
		"amount", order.QuoteInt(d.Amount), fmt.Sprintf("1 to %d", int64(order.MaxUnitAmount)))
	named := d.Currency != ""
	check(!named || order.ValidCurrency(d.Currency), "currency", order.Quote(d.Currency), order.CurrencyRule)
	check(slices.Contains([]Reason{Duplicate, Fraudulent, RequestedByCustomer}, Reason(d.Reason)),
		"reason", order.Quote(d.Reason), `"duplicate", "fraudulent" or "requested_by_customer"`)
	if len(all) > 0 {
		return Request{}, &order.InvalidError{Of: "refund", Problems: all}
	}
	return Request{
		order.ID(d.OrderID), ID(d.RefundID), d.Amount, order.Currency(d.Currency), Reason(d.Reason),
	}, nil
}

// MaxRefunds is how many refunds an order may have, so that its record stays small.
const MaxRefunds = 200

// OrderID returns the order whose money goes back.
func (r Request) OrderID() order.ID { return r.orderID }

// ID returns the producer's id of the refund.
func (r Request) ID() ID { return r.id }

// Amount returns the amount in the units of the order's total.
func (r Request) Amount() int64 { return r.amount }

// Currency returns the currency that the producer named, or "".
func (r Request) Currency() order.Currency { return r.currency }

// Reason returns why the money goes back.
func (r Request) Reason() Reason { return r.reason }

// Fingerprint returns the hash of the request's content. Another content under the same
// id is a conflict. The currency is that of the order, so it adds nothing.
func (r Request) Fingerprint() order.Fingerprint {
	h := sha256.Sum256(fmt.Appendf(nil, "%d %s", r.amount, r.reason))
	return order.Fingerprint("v1:" + hex.EncodeToString(h[:]))
}

// Key returns the idempotency key of a refund. It holds neither the attempt nor the
// message, so that every delivery sends the same one. seq counts the keys that hold a
// stored failure.
func Key(s order.Scope, id order.ID, refund ID, seq int) string {
	return fmt.Sprintf("%s/order/%s/refund/%s/%d", s, id, refund, seq)
}

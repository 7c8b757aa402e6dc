package stripetest

import (
	"fmt"
	"slices"
	"time"
)

// Outcome is the result of one attempt to charge.
type Outcome string

// The outcomes. A payment that takes days has none until it is settled.
const (
	Charged  Outcome = "succeeded"
	Declined Outcome = "declined"
)

// Charge is one line of the ledger: an attempt that reached the card network. Amount is
// in Stripe's unit.
type Charge struct {
	At       time.Time
	Intent   string
	OrderID  string // Metadata orderId of the intent.
	Scope    string // Metadata scope of the intent.
	Amount   int64
	Currency string
	Outcome  Outcome
	Failure  ChargeFailure
	Key      string    // The idempotency key of the request that charged; empty if a person or the bank did.
	Request  RequestID // The id of that request; 0 if a person or the bank charged.
	Disputed bool
	Refunded int64 // In Stripe's unit.
}

// ChargeFailure is why a charge was declined, as its failure_code and outcome show. It is
// zero for a charge that succeeded.
type ChargeFailure struct {
	Code   string // failure_code, one of docs.stripe.com/error-codes.
	Reason string // Of the outcome: the issuer's decline code, or highest_risk_level.
}

// chargeFailure is the failure of a declined charge. docs.stripe.com/api/charges/object:
// failure_code is "one of the error codes", outcome.reason is highest_risk_level if Radar
// blocks by default. Otherwise it is the issuer's decline code. Both are
// authentication_required if the bank requires authentication.
func chargeFailure(c card, decline *Error) ChargeFailure {
	if c == blocked {
		return ChargeFailure{Code: decline.Code, Reason: "highest_risk_level"}
	}
	return ChargeFailure{Code: decline.Code, Reason: decline.DeclineCode}
}

// wire is the charge as Stripe sends it (docs.stripe.com/api/charges/object).
func (c *Charge) wire(id string) object {
	status, captured := "succeeded", c.Amount
	if c.Outcome == Declined {
		status, captured = "failed", 0
	}
	return object{
		"id": id, "object": "charge", "amount": c.Amount, "amount_captured": captured,
		"amount_refunded": c.Refunded, "refunded": c.Refunded == c.Amount, "created": c.At.Unix(),
		"currency": c.Currency, "disputed": c.Disputed, "livemode": false, "payment_intent": c.Intent,
		"failure_code": orNull(c.Failure.Code), "outcome": object{"reason": orNull(c.Failure.Reason)},
		"paid": c.Outcome == Charged, "status": status,
	}
}

// Ledger returns every charge, oldest first. No charge is ever removed.
func (m *Machine) Ledger() []Charge { return slices.Clone(m.ledger) }

// LedgerAfter returns the charges after the first n, oldest first.
func (m *Machine) LedgerAfter(n int) []Charge { return slices.Clone(m.ledger[min(n, len(m.ledger)):]) }

// Attempts returns the length of the ledger.
func (m *Machine) Attempts() int { return len(m.ledger) }

// Charges returns the successful charges of one order, oldest first. It scans the ledger,
// so for many orders use Ledger once.
func (m *Machine) Charges(orderID string) []Charge {
	return slices.DeleteFunc(m.Ledger(), func(c Charge) bool {
		return c.OrderID != orderID || c.Outcome != Charged
	})
}

func (m *Machine) record(now time.Time, i *Intent, outcome Outcome, why ChargeFailure, c *call) string {
	m.ledger = append(m.ledger, Charge{
		At: now, Intent: i.ID, OrderID: i.OrderID(), Scope: i.Metadata["scope"],
		Amount: i.Amount, Currency: i.Currency, Outcome: outcome, Failure: why, Key: c.Key, Request: c.number,
	})
	return fmt.Sprintf("ch_%06d", len(m.ledger))
}

func (m *Machine) latestCharge(i *Intent) *Charge {
	if i.LatestCharge == "" {
		return nil
	}
	return &m.ledger[number(i.LatestCharge)-1]
}

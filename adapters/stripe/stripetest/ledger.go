package stripetest

import (
	"fmt"
	"slices"
	"time"
)

// Outcome is how one attempt to move money ended.
type Outcome string

// The outcomes. A bank that takes days has none until it is settled.
const (
	Charged  Outcome = "succeeded"
	Declined Outcome = "declined"
)

// Charge is one line of the ledger: what the card network saw. Amount means what Stripe's amount means.
type Charge struct {
	At       time.Time
	Intent   string
	OrderID  string // Metadata orderId of the intent.
	Scope    string // Metadata scope of the intent.
	Amount   int64
	Currency string
	Outcome  Outcome
	Key      string    // The idempotency key of the request that moved the money; empty if a person or the bank did.
	Request  RequestID // Likewise; 0.
}

// Ledger returns every charge, oldest first. Nothing is ever removed from it.
func (m *Machine) Ledger() []Charge { return slices.Clone(m.ledger) }

// Charges returns the successful charges of one order, oldest first. It walks the ledger: for many orders, walk Ledger once.
func (m *Machine) Charges(orderID string) []Charge {
	return slices.Collect(func(yield func(Charge) bool) {
		for _, charge := range m.ledger {
			if charge.OrderID == orderID && charge.Outcome == Charged && !yield(charge) {
				return
			}
		}
	})
}

// record appends a charge of an intent and returns its id.
func (m *Machine) record(now time.Time, i *Intent, outcome Outcome, c call) string {
	m.ledger = append(m.ledger, Charge{
		At: now, Intent: i.ID, OrderID: i.OrderID(), Scope: i.Metadata["scope"],
		Amount: i.Amount, Currency: i.Currency, Outcome: outcome, Key: c.Key, Request: c.number,
	})
	return fmt.Sprintf("ch_%06d", len(m.ledger))
}

package order

import (
	"fmt"
	"slices"
	"time"
)

// Status is the status of an order. The diagram in docs/design.md shows every transition;
// a test compares it with Next.
type Status string

// The statuses of an order.
const (
	Open           Status = "open"            // claimed and not settled
	Paid           Status = "paid"            // the money moved
	Declined       Status = "declined"        // by the bank; the customer may still pay the same intent another way
	Canceled       Status = "canceled"        // at the provider, or by an operator before an intent was bound
	ActionRequired Status = "action_required" // the customer must authenticate: neither declined nor paid
	Pending        Status = "pending"         // the bank needs days
	// PartiallyRefunded and Refunded are paid orders of which money went back. Package
	// refund has their transitions.
	PartiallyRefunded Status = "partially_refunded"
	Refunded          Status = "refunded"

	Refused Status = "refused" // the provider does not accept the order; a redrive retries it
	// OutOfStock is the status of an order whose stock could not be reserved. It is never
	// charged, and only stores that track stock have it.
	OutOfStock Status = "out_of_stock"
)

// Statuses returns every status.
func Statuses() []Status {
	return []Status{
		Open, Paid, Declined, Canceled, ActionRequired, Pending, Refused, PartiallyRefunded, Refunded, OutOfStock,
	}
}

// ParseStatus returns the status that a record holds, or ErrUnknownVersion.
func ParseStatus(s string) (Status, error) {
	if known := Status(s); slices.Contains(Statuses(), known) {
		return known, nil
	}
	return "", fmt.Errorf("status %q: %w", s, ErrUnknownVersion)
}

// Next returns the statuses that may follow s.
func (s Status) Next() []Status {
	switch s {
	case Open:
		return []Status{Paid, Declined, Canceled, ActionRequired, Pending, Refused, OutOfStock}
	case Refused: // a bound intent may still get any outcome
		return []Status{Open, Paid, Declined, Canceled, ActionRequired, Pending}
	case ActionRequired:
		return []Status{Paid, Declined, Canceled}
	case Pending:
		return []Status{Paid, Declined, Canceled}
	case Declined:
		return []Status{Paid, Canceled}
	case Paid, Canceled, PartiallyRefunded, Refunded, OutOfStock:
	}
	return nil
}

// Transition returns nil if an order may go from s to next, and a *TransitionError
// otherwise.
func (s Status) Transition(next Status) error {
	if slices.Contains(s.Next(), next) {
		return nil
	}
	return &TransitionError{From: s, To: next}
}

// TransitionError reports an invalid transition.
type TransitionError struct{ From, To Status }

// Error names both statuses.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("invalid transition: %s -> %s", e.From, e.To)
}

// RecheckAfter returns how long after its last change an order in s should be rechecked
// at the provider. waits is false for a status that waits for nothing.
func (s Status) RecheckAfter() (after time.Duration, waits bool) {
	switch s {
	case Open:
		return 15 * time.Minute, true // by then the last lease has expired
	case Pending:
		return time.Hour, true
	case ActionRequired, Declined: // the customer may still pay the same intent
		return 24 * time.Hour, true
	case Paid, Canceled, Refused, PartiallyRefunded, Refunded, OutOfStock:
	}
	return 0, false
}

// RecheckAfter is that of the record's status. A refused order that holds stock waits as
// well, for a person who redrives or cancels it, so that the index has every order that
// holds stock.
func (r Record) RecheckAfter() (after time.Duration, waits bool) {
	if r.Status == Refused && len(r.Stock) > 0 {
		return 24 * time.Hour, true
	}
	return r.Status.RecheckAfter()
}

// MayLackIntent reports whether an order in s may have no intent. No money moved for one
// that has none.
func (s Status) MayLackIntent() bool {
	return s == Open || s == Refused || s == Canceled || s == OutOfStock
}

// Charged reports whether the customer paid an order in s, whatever went back since.
func (s Status) Charged() bool { return s == Paid || s == PartiallyRefunded || s == Refunded }

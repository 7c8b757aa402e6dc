package order

import (
	"fmt"
	"slices"
	"time"
)

// Status says where an order is. The drawing in docs/design.md shows every transition; a test compares.
type Status string

// The statuses of an order.
const (
	Open           Status = "open"            // claimed, not settled: somebody is or will be working on it
	Paid           Status = "paid"            // the money moved
	Declined       Status = "declined"        // the bank said no; the customer may still pay the same intent another way
	Canceled       Status = "canceled"        // somebody canceled the intent at the provider
	ActionRequired Status = "action_required" // the bank wants the customer: no refusal, and no money yet
	Pending        Status = "pending"         // the bank takes days
	Refunded       Status = "refunded"        // the money went back
)

// Statuses lists every status, in the order of an order's life.
func Statuses() []Status {
	return []Status{Open, Paid, Declined, Canceled, ActionRequired, Pending, Refunded}
}

// ParseStatus is the status that a record holds.
func ParseStatus(s string) (Status, error) {
	for _, known := range Statuses() {
		if s == string(known) {
			return known, nil
		}
	}
	return "", fmt.Errorf("status %q: %w", s, ErrUnknownVersion)
}

// Next lists the statuses that an order in s may become.
func (s Status) Next() []Status {
	switch s {
	case Open:
		return []Status{Paid, Declined, Canceled, ActionRequired, Pending}
	case ActionRequired:
		return []Status{Paid, Declined, Canceled}
	case Pending:
		return []Status{Paid, Declined, Canceled}
	case Declined:
		return []Status{Paid}
	case Paid:
		return []Status{Refunded}
	case Canceled, Refunded:
		return nil
	}
	return nil
}

// Transition returns nil if an order may go from s to next, and a *TransitionError otherwise.
func (s Status) Transition(next Status) error {
	if slices.Contains(s.Next(), next) {
		return nil
	}
	return &TransitionError{From: s, To: next}
}

// TransitionError is a change of status that nobody drew.
type TransitionError struct{ From, To Status }

// Error names both statuses.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("invalid transition: %s -> %s", e.From, e.To)
}

// RecheckAfter is how long after its last change an order in s is worth asking the provider about.
// waits is false for a status that waits for nothing.
func (s Status) RecheckAfter() (after time.Duration, waits bool) {
	switch s {
	case Open:
		return 15 * time.Minute, true // by then every lease of its last worker is over
	case Pending:
		return time.Hour, true
	case ActionRequired:
		return 24 * time.Hour, true
	case Paid, Declined, Canceled, Refunded:
		return 0, false
	}
	return 0, false
}

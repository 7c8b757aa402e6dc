package refund

import (
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
)

// Status is the status of a refund. docs/design.md shows every transition; a test
// compares it with Next.
type Status string

// The statuses of a refund.
const (
	Open      Status = "open"      // claimed: it may or may not have been made
	Pending   Status = "pending"   // made; the bank needs days
	Succeeded Status = "succeeded" // the money went back
	Failed    Status = "failed"    // made, and the bank returned the money; a new refund needs a new id
	Refused   Status = "refused"   // never made, for a reason that the provider gave
	Unknown   Status = "unknown"   // it may have been made, and only a person can tell
)

// Statuses returns every status.
func Statuses() []Status { return []Status{Open, Pending, Succeeded, Failed, Refused, Unknown} }

// ParseStatus returns the status that an item holds, or order.ErrUnknownVersion.
func ParseStatus(s string) (Status, error) {
	if known := Status(s); slices.Contains(Statuses(), known) {
		return known, nil
	}
	return "", fmt.Errorf("refund status %q: %w", s, order.ErrUnknownVersion)
}

// Next returns the statuses that may follow s.
func (s Status) Next() []Status {
	switch s {
	case Open:
		return []Status{Pending, Succeeded, Failed, Refused, Unknown}
	case Unknown: // a person, or a later look at the provider, decides
		return []Status{Pending, Succeeded, Failed, Refused}
	case Pending:
		return []Status{Succeeded, Failed}
	case Succeeded: // the bank may return the money days later
		return []Status{Failed}
	case Failed, Refused: // another refund with this id counts after all
		return []Status{Pending, Succeeded}
	}
	return nil
}

// Transition returns nil if a refund may go from s to next, and an error that names both
// otherwise.
func (s Status) Transition(next Status) error {
	if slices.Contains(s.Next(), next) {
		return nil
	}
	return fmt.Errorf("invalid transition of a refund: %s -> %s", s, next)
}

// Counts reports whether a refund in s took money from the charge, as the provider
// counts.
func (s Status) Counts() bool { return s == Pending || s == Succeeded }

// reserves reports whether a refund in s takes, or may have taken, money from the charge.
func (s Status) reserves() bool { return s.Counts() || s == Open || s == Unknown }

// RecheckAfter returns how long after its last change a refund in s should be looked at.
// waits is false for a status that waits for nothing. An unknown one waits for a person,
// or for a request that the provider executes late. A succeeded refund may still fail:
// only a webhook reports that.
func (s Status) RecheckAfter() (after time.Duration, waits bool) {
	switch s {
	case Open:
		return 2 * order.MaxLease, true
	case Pending, Unknown:
		return 24 * time.Hour, true
	case Succeeded, Failed, Refused:
	}
	return 0, false
}

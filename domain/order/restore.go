package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNoFingerprint reports an intent that this application did not prepare.
var ErrNoFingerprint = errors.New("intent without an order fingerprint")

// Restore writes the record of an order that the store lost, from the intent that was
// prepared for it, and settles the record if the intent has an outcome. It never moves
// money. Afterwards a redelivered message of the order finds the intent bound and does
// not charge again.
//
// Use it after a restore from backup, for an order that was parked as record_lost.
// Errors: those of Store and Payments, *MismatchError, and ErrNoFingerprint.
func Restore(
	ctx context.Context, st Store, ps Payments, s Scope, id ID, bound IntentID, at time.Time,
) (Record, error) {
	i, err := ps.Read(ctx, bound)
	if err != nil {
		return Record{}, fmt.Errorf("read intent %s: %w", bound, err)
	}
	if err := Verify(i, s, id, i.Total); err != nil {
		return Record{}, err
	}
	if i.Fingerprint == "" {
		return Record{}, fmt.Errorf("intent %s: %w", bound, ErrNoFingerprint)
	}
	lost := Record{OrderID: id, Total: i.Total, Fingerprint: i.Fingerprint, Intent: i.ID, Mode: i.Mode}
	if err := Recreate(ctx, st, lost, at); err != nil {
		return Record{}, fmt.Errorf("recreate the record of order %s: %w", id, err)
	}
	return Refresh(ctx, st, ps, s, id, at)
}

// CheckRestore returns why an existing record must not be bound to r.Intent: the errors
// of Recreate. It returns nil if r.Intent is bound already or may be bound.
func CheckRestore(there, r Record, at time.Time) error {
	switch {
	case there.Fingerprint.version() != r.Fingerprint.version():
		return ErrUnknownVersion
	case there.Fingerprint != r.Fingerprint:
		return ErrConflict
	case there.Intent == r.Intent:
		return nil
	case there.Intent != "":
		return &MismatchError{
			Intent: r.Intent,
			Field:  "bound intent",
			Got:    string(r.Intent),
			Want:   string(there.Intent),
		}
	case there.Status != Open:
		return &SettledError{Record: there}
	case Held(there.Until, at):
		return &InProgressError{Until: there.Until}
	}
	return nil
}

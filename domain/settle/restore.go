package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
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
	ctx context.Context, st order.Store, ps order.Payments, s order.Scope, id order.ID, bound order.IntentID, at time.Time,
) (order.Record, error) {
	i, err := ps.Read(ctx, bound)
	if err != nil {
		return order.Record{}, fmt.Errorf("read intent %s: %w", bound, err)
	}
	if err := order.Verify(i, s, id, i.Total); err != nil {
		return order.Record{}, err
	}
	if i.Fingerprint == "" {
		return order.Record{}, fmt.Errorf("intent %s: %w", bound, ErrNoFingerprint)
	}
	lost := order.Record{OrderID: id, Total: i.Total, Fingerprint: i.Fingerprint, Intent: i.ID, Mode: i.Mode}
	if err := Recreate(ctx, st, lost, at); err != nil {
		return order.Record{}, err
	}
	return Refresh(ctx, st, ps, s, id, at)
}

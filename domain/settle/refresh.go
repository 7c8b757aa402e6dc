package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
)

// Refresh reads an order's intent from the provider and settles the record if the intent
// has an outcome that the record does not show. It never moves money. It returns the
// record as it is afterwards. Errors: those of Store and Payments, *MismatchError, and
// ErrNoIntent.
func Refresh(
	ctx context.Context, st order.Store, ps order.Payments, s order.Scope, id order.ID, at time.Time,
) (order.Record, error) {
	r, err := st.Load(ctx, id)
	if err != nil {
		return order.Record{}, fmt.Errorf("load order %s: %w", id, err)
	}
	if r.Intent == "" {
		return r, order.ErrNoIntent
	}
	settled, err := settleFrom(ctx, st, ps, s, r, at)
	if err != nil || !settled {
		return r, err
	}
	return st.Load(ctx, id)
}

// settleFrom reads the record's intent and settles the record if the intent has an
// outcome that the record does not show.
func settleFrom(
	ctx context.Context, st order.Store, ps order.Payments, s order.Scope, r order.Record, at time.Time,
) (bool, error) {
	intent, err := order.ReadIntent(ctx, ps, s, r)
	if err != nil {
		return false, err
	}
	outcome, found := order.Unrecorded(r.Status, intent)
	if found {
		err = order.Settle(ctx, st, r, outcome, at)
	}
	return found && err == nil, err
}

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
	ctx context.Context, st order.Store, ps order.Payments, s order.Scope,
	id order.ID, bound order.IntentID, at time.Time,
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

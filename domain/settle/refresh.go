package settle

import (
	"context"
	"fmt"
	"time"

	"orderonce/domain/order"
)

// Refresh reads an order's intent from the provider and settles the record if the intent
// has an outcome that the record does not show. It never moves money. It returns the
// record as it is afterwards. Errors: those of Store and Payments, *MismatchError, and
// ErrNoIntent.
func Refresh(ctx context.Context, st order.Store, ps order.Payments, s order.Scope, id order.ID, at time.Time) (order.Record, error) {
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
func settleFrom(ctx context.Context, st order.Store, ps order.Payments, s order.Scope, r order.Record, at time.Time) (bool, error) {
	intent, err := order.ReadIntent(ctx, ps, s, r)
	if err != nil {
		return false, err
	}
	outcome, found := order.Unrecorded(r.Status, intent)
	if !found {
		return false, nil
	}
	if err := order.Settle(ctx, st, r, outcome, at); err != nil {
		return false, fmt.Errorf("settle order %s as %s: %w", r.OrderID, outcome.Status, err)
	}
	return true, nil
}

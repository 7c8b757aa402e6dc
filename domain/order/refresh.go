package order

import (
	"context"
	"fmt"
	"time"
)

// Refresh asks the provider what became of an order's intent, and settles the record if it has an outcome that the
// record does not show yet. It never moves money, so anybody may run it at any time. It returns the record as it is
// afterwards. Errors: those of Records and Payments, *MismatchError, and ErrNoIntent.
func Refresh(ctx context.Context, rs Records, ps Payments, s Scope, id ID, at time.Time) (Record, error) {
	r, err := rs.Load(ctx, id)
	if err != nil {
		return Record{}, fmt.Errorf("load order %s: %w", id, err)
	}
	if r.Intent == "" {
		return r, ErrNoIntent
	}
	intent, err := ps.Read(ctx, r.Intent)
	if err != nil {
		return r, fmt.Errorf("read intent %s of order %s: %w", r.Intent, id, err)
	}
	if err := verify(intent, s, id, r.Total); err != nil {
		return r, err
	}
	outcome, settled := OutcomeOf(intent)
	if !settled || !news(r.Status, outcome.Status) {
		return r, nil
	}
	if err := rs.Settle(ctx, r, outcome, at); err != nil {
		return r, fmt.Errorf("settle order %s as %s: %w", id, outcome.Status, err)
	}
	return rs.Load(ctx, id)
}

// news reports whether what the provider says is to be written. An intent that was declined, or that waits for the
// customer, may go through other states before it is paid, which nobody drew because nobody is told of them. And
// it stays succeeded when its money went back. But that a paid order is not paid is never passed over in silence.
func news(now, said Status) bool {
	if now == said || now == Refunded {
		return false
	}
	return now == Paid || said == Paid || now.Transition(said) == nil
}

package order

import (
	"context"
	"fmt"
	"time"
)

// Refresh reads an order's intent from the provider and settles the record if the intent
// has an outcome that the record does not show. It never moves money. It returns the
// record as it is afterwards. Errors: those of Store and Payments, *MismatchError, and
// ErrNoIntent.
func Refresh(ctx context.Context, st Store, ps Payments, s Scope, id ID, at time.Time) (Record, error) {
	r, err := st.Load(ctx, id)
	if err != nil {
		return Record{}, fmt.Errorf("load order %s: %w", id, err)
	}
	if r.Intent == "" {
		return r, ErrNoIntent
	}
	settled, err := settleFrom(ctx, st, ps, s, r, at)
	if err != nil || !settled {
		return r, err
	}
	return st.Load(ctx, id)
}

// settleFrom reads the record's intent and settles the record if the intent has an
// outcome that the record does not show.
func settleFrom(ctx context.Context, st Store, ps Payments, s Scope, r Record, at time.Time) (bool, error) {
	intent, err := readIntent(ctx, ps, s, r)
	if err != nil {
		return false, err
	}
	outcome, found := Unrecorded(r.Status, intent)
	if !found {
		return false, nil
	}
	if err := Settle(ctx, st, r, outcome, at); err != nil {
		return false, fmt.Errorf("settle order %s as %s: %w", r.OrderID, outcome.Status, err)
	}
	return true, nil
}

// readIntent reads the record's intent and verifies that it is the order's.
func readIntent(ctx context.Context, ps Payments, s Scope, r Record) (Intent, error) {
	intent, err := ps.Read(ctx, r.Intent)
	if err != nil {
		return Intent{}, fmt.Errorf("read intent %s of order %s: %w", r.Intent, r.OrderID, err)
	}
	return intent, Verify(intent, s, r.OrderID, r.Total)
}

// worthRecording reports whether the provider's status belongs in the record. An intent
// that was declined, or that waits for the customer, may pass through other states before
// it is paid; these have no transition and are skipped. A paid order that is not paid at
// the provider is never skipped: Settle returns its *TransitionError.
func worthRecording(now, said Status) bool {
	if now == said || now.Charged() && said == Paid {
		return false
	}
	return now.Charged() || said == Paid || now.Transition(said) == nil
}

// Unrecorded returns the outcome of an order's intent that a record in this status should
// show and does not. Settle records it, or refuses it with a *TransitionError.
func Unrecorded(now Status, i Intent) (o Outcome, found bool) {
	o, settled := OutcomeOf(i)
	return o, settled && worthRecording(now, o.Status)
}

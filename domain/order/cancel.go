package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Canceler cancels intents at the provider, for operators and for stock that no customer
// pays. ordertest.TestPayments tests this contract.
type Canceler interface {
	// CancelIntent cancels an intent that has not succeeded, so that no attempt can
	// confirm it any more, and returns it in its current state. It returns an intent that
	// succeeded or was canceled before as it is. The errors are those of Payments.Confirm.
	CancelIntent(ctx context.Context, id IntentID, k Key) (Intent, error)
}

// CanceledByOperator is the Failure of an order that was canceled before an intent was
// bound.
const CanceledByOperator = "canceled_by_operator"

// cancelTries is how often Cancel starts again after a concurrent update: a worker binds
// an intent once and settles the order once.
const cancelTries = 3

// Cancellation cancels orders.
type Cancellation struct {
	Store    Store
	Payments Payments
	Canceler Canceler
	Scope    Scope
}

// Cancel closes an order, so that no message can charge it, and returns the record as it
// is afterwards. Its status is not Canceled if the customer paid first, or if the
// provider cannot cancel the intent any more.
//
// The provider decides a race with Confirm: an intent is canceled or succeeds, never
// both, and worker and operator record the same state of it. An order without an intent
// is closed in the store alone: Bind needs an open order. Errors: those of Store,
// Payments and Canceler, *MismatchError, and *RecordLostError for a record with a
// Suspect, whose money may have moved: Restore it first.
func (c *Cancellation) Cancel(ctx context.Context, id ID, at time.Time) (Record, error) {
	var r Record
	var err error
	for range cancelTries {
		if r, err = c.Store.Load(ctx, id); err != nil {
			return Record{}, fmt.Errorf("load order %s: %w", id, err)
		}
		if err = c.close(ctx, r, at); !errors.Is(err, ErrStale) {
			break
		}
	}
	if err != nil {
		return r, err
	}
	return c.Store.Load(ctx, id)
}

// CancelDeclined cancels an order that holds stock and has waited for its customer for at
// least hold: it was declined, or needs authentication. It does nothing to any other
// order, nor while the provider processes the payment. r is the record as loaded; the
// record as it is afterwards is returned. The promises and errors are those of Cancel.
func (c *Cancellation) CancelDeclined(
	ctx context.Context, r Record, hold time.Duration, at time.Time,
) (Record, error) {
	waits := r.Status == Declined || r.Status == ActionRequired
	if !waits || len(r.Stock) == 0 || max(at.Sub(r.LastChange()), 0) < hold {
		return r, nil
	}
	intent, err := ReadIntent(ctx, c.Payments, c.Scope, r)
	if err != nil || intent.State == Processing {
		return r, err
	}
	return c.Cancel(ctx, r.OrderID, at)
}

// close cancels the record's intent and settles the record, or settles a record without
// an intent. It does nothing to an order that is paid, canceled or out of stock.
func (c *Cancellation) close(ctx context.Context, r Record, at time.Time) error {
	switch {
	case r.Status.Charged() || r.Status == Canceled || r.Status == OutOfStock:
		return nil
	case r.Intent == "" && r.Suspect != "":
		return &RecordLostError{Intent: r.Suspect}
	}
	outcome := Outcome{Status: Canceled, Failure: CanceledByOperator}
	if r.Intent != "" {
		intent, err := c.cancelIntent(ctx, r, at)
		if err != nil {
			return err
		}
		found := false
		if outcome, found = Unrecorded(r.Status, intent); !found {
			return nil
		}
	}
	return Settle(ctx, c.Store, r, outcome, at)
}

// cancelIntent cancels the record's intent, after it has made sure that it is the
// order's.
func (c *Cancellation) cancelIntent(ctx context.Context, r Record, at time.Time) (Intent, error) {
	intent, err := ReadIntent(ctx, c.Payments, c.Scope, r)
	if err != nil || intent.State == Succeeded || intent.State == IntentCanceled {
		return intent, err
	}
	canceled, err := c.Canceler.CancelIntent(ctx, r.Intent, CancelKey(c.Scope, r.OrderID, at))
	if err == nil {
		return canceled, Verify(canceled, c.Scope, r.OrderID, r.Total)
	}
	now, readErr := ReadIntent(ctx, c.Payments, c.Scope, r)
	if readErr == nil && now.State == IntentCanceled { // only the response was lost
		return now, nil
	}
	return Intent{}, fmt.Errorf("cancel intent %s of order %s: %w", r.Intent, r.OrderID, err)
}

// ReadIntent reads the record's intent and verifies that it is the order's.
func ReadIntent(ctx context.Context, ps Payments, s Scope, r Record) (Intent, error) {
	intent, err := ps.Read(ctx, r.Intent)
	if err != nil {
		return Intent{}, fmt.Errorf("read intent %s of order %s: %w", r.Intent, r.OrderID, err)
	}
	return intent, Verify(intent, s, r.OrderID, r.Total)
}

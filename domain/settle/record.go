// Package settle records what the provider decides after the charge: a payment that took
// days, a customer who paid later, a dispute. It follows webhooks and rechecks the orders
// that wait, and it restores a record that the store lost. It never moves money, and a
// worker that charges does not need it.
package settle

import (
	"context"
	"errors"
	"time"

	"orderonce/domain/order"
)

// RecordDispute records the dispute and adds its event. It changes neither the status,
// nor the claim, nor the time of the recheck. It is guarded as order.Settle: it returns
// ErrStale if the record changed since it was loaded, and nil, changing nothing, if it
// already shows this dispute in this status.
func RecordDispute(
	ctx context.Context, s order.Store, seen order.Record, d order.Dispute, at time.Time,
) error {
	_, err := order.Change(ctx, s, seen, func(r order.Record) (order.Record, error) {
		switch {
		case r.Status != "" && d.Is(r.Dispute):
			return r, order.ErrUnchanged
		case !r.UnchangedSince(seen):
			return r, order.ErrStale
		}
		r = r.With(order.Event{From: r.Status, To: r.Status, Intent: r.Intent, Dispute: d, At: at})
		r.Dispute, r.UpdatedAt = d, at
		return r, nil
	})
	return order.About("record dispute of", seen.OrderID, err)
}

// Recreate writes an open record bound to lost.Intent after the store lost it. The record
// must be missing, or open without an intent and without a running lease. It takes the
// id, total, fingerprint, intent and mode from lost, keeps attempts and events that
// exist, counts the events from the last one, and removes Suspect. It returns nil,
// changing nothing, if this intent is already bound.
//
// An open record with another fingerprint is replaced, and releases its stock: a message
// with other content came after the record was lost, and is a conflict from now on.
//
// It returns ErrUnknownVersion or ErrConflict for another fingerprint of any other
// record, *MismatchError if another intent is bound, *SettledError and *InProgressError.
func Recreate(ctx context.Context, s order.Store, lost order.Record, at time.Time) error {
	there, err := s.Load(ctx, lost.OrderID)
	if err != nil && !errors.Is(err, order.ErrNotFound) {
		return order.About("recreate", lost.OrderID, err)
	}
	last := 0 // the number of the last event that is left, so that the next one does not take its place
	for _, e := range there.Events {
		last = max(last, e.Seq)
	}
	there.OrderID, there.Events = lost.OrderID, nil
	_, err = order.Change(ctx, s, there, func(r order.Record) (order.Record, error) {
		if err := checkRecreate(r, lost, at); r.Status != "" && err != nil {
			return r, err
		}
		if r.Fingerprint != lost.Fingerprint {
			r = order.Record{
				OrderID: lost.OrderID, Total: lost.Total, Fingerprint: lost.Fingerprint, Status: order.Open,
				Attempt: max(r.Attempt, 1), Seq: max(r.Seq, last), CreatedAt: at,
			}
		}
		r.Intent, r.Mode, r.Suspect, r.Owner, r.Until = lost.Intent, lost.Mode, "", "", time.Time{}
		return r.ChangedAt(at), nil
	})
	return order.About("recreate", lost.OrderID, err)
}

// checkRecreate returns why an existing record must not be bound to the intent of lost,
// or ErrUnchanged if it is bound already.
func checkRecreate(there, lost order.Record, at time.Time) error {
	unbound := there.Status == order.Open && there.Intent == ""
	switch {
	case !unbound && there.Fingerprint.Conflicts(lost.Fingerprint):
		return order.ErrConflict
	case !unbound && there.Fingerprint != lost.Fingerprint:
		return order.ErrUnknownVersion
	case there.Intent == lost.Intent:
		return order.ErrUnchanged
	case there.Intent != "":
		return &order.MismatchError{
			Intent: lost.Intent, Field: "bound intent", Got: string(lost.Intent), Want: string(there.Intent),
		}
	case there.Status != order.Open:
		return &order.SettledError{Record: there}
	case order.LeaseRunning(there.Until, at):
		return &order.InProgressError{Until: there.Until}
	}
	return nil
}

// Postpone moves the recheck of an order to due, or ends it if due is zero. It returns
// ErrStale if the record changed since it was loaded. It changes nothing else.
func Postpone(ctx context.Context, s order.Store, r order.Record, due time.Time) error {
	after := r
	after.DueAt = due
	_, err := s.Save(ctx, r, after)
	return order.About("postpone", r.OrderID, err)
}

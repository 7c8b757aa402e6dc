package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps records. It decides nothing: a transition is a pure function of a record,
// and Save writes what that function returned. ordertest.TestStore tests this contract.
type Store interface {
	// Load returns the record with its events, strongly consistent. It returns
	// ErrNotFound if there is no record, with the id and the events that are left,
	// ErrUnknownVersion for a status that this release does not know, and ErrCorrupt for
	// an invalid record.
	Load(ctx context.Context, id ID) (Record, error)

	// Save writes after in place of before, with the events that before does not have and
	// the effect on the stock, whole or not at all. A record without a status is missing.
	// It returns the record as it is afterwards, without its events.
	//
	// It returns ErrStale and the record that is there, if that differs from before in
	// status, seq, owner, intent, attempt, lease, stock or the note of NoteParked, or in
	// anything that after changes, but for UpdatedAt and Trace. It returns nil if the
	// record is after already, because the answer to an earlier try was lost. It returns
	// *ShortError for a quantity that is not in stock, and the errors of Load for a record
	// that is there and cannot be read. After any other error the write may or may not
	// have happened.
	Save(ctx context.Context, before, after Record) (Record, error)
}

// Saver writes the states of one kind, as Store writes records.
type Saver[T any] interface {
	Save(ctx context.Context, before, after T) (T, error)
}

// ShortError reports stock that cannot be reserved.
type ShortError struct {
	SKU      string
	Unlisted bool // the store has no such SKU
}

// Error names the SKU.
func (e *ShortError) Error() string { return "out of stock: " + e.SKU }

// ErrUnchanged is the result of a transition that has nothing to write.
var ErrUnchanged = errors.New("the record shows it already")

// maxSaves is how often a change starts again on a state that another writer changed.
// Each time another write has succeeded: the refunds of one order have the most.
const maxSaves = 20

// Change saves what a transition makes of a state. seen is the state as the caller knows
// it, so that a change costs one call: if it is stale, Save returns the state that is
// there, and the transition decides again. The transition returns ErrUnchanged if there
// is nothing to write; Change then returns nil. It returns ErrStale if others write for
// ever.
//
//nolint:ireturn // T is a record or an account
func Change[T any](
	ctx context.Context, s Saver[T], seen T, transition func(T) (T, error),
) (T, error) {
	for range maxSaves {
		after, err := transition(seen)
		if errors.Is(err, ErrUnchanged) {
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		now, err := s.Save(ctx, seen, after)
		switch {
		case err == nil:
			return now, nil
		case !errors.Is(err, ErrStale):
			return seen, err
		}
		seen = now
	}
	return seen, ErrStale
}

// Begin claims the order for the lease, or takes over an order whose lease has expired.
// The claim is NewClaim of the record. A refused order is open again: Begin adds the
// event of that transition in the same write.
//
// stock is what to reserve if the order holds none, all or none of them; the claim says
// which the order holds, or which SKU is short. They are nil for a store that does
// not track stock. An order that holds none may have an intent: Recreate does not know
// its stock.
//
// Begin returns the errors of CheckClaim: ErrUnknownVersion if a newer release wrote the
// record, ErrConflict if the id is used with different content, *SettledError if the
// order is settled, *InProgressError if another lease is running. It returns ErrCorrupt
// for an invalid record. After any error that a function of this file does not name, its
// write may or may not have happened; the next Begin reads what did.
//
// A new order and a duplicate cost one call, a takeover two, and a SKU that is short
// one more.
func Begin(ctx context.Context, s Store, o Order, l Lease, quantities Quantities) (Claim, error) {
	var short *ShortError
	if len(quantities) > MaxSKUs {
		quantities, short = nil, &ShortError{SKU: TooManySKUs}
	}
	r, err := Change(ctx, s, Record{OrderID: o.ID()}, begin(o, l, quantities))
	if errors.As(err, &short) {
		r, err = Change(ctx, s, r, begin(o, l, nil))
	}
	if err != nil {
		return Claim{}, about("begin", o.ID(), err)
	}
	c := NewClaim(r, o, l)
	if short != nil && c.Stock == nil {
		c.Short, c.Unlisted = short.SKU, short.Unlisted
	}
	return c, nil
}

// Bind records the one intent that may ever be confirmed for this order, and its mode,
// and removes the record's Suspect. It returns nil if this intent is already bound, and
// ErrClaimLost if the claim was lost or another intent is bound.
func (c Claim) Bind(ctx context.Context, s Store, i Intent, at time.Time) error {
	_, err := Change(ctx, s, c.seen(c.Intent), bind(c.Lease.Owner, i, at))
	return about("bind", c.Order.ID(), err)
}

// Finish settles or refuses the order, adds one event and ends the claim. It returns nil
// if the record already has this status and intent, ErrClaimLost if the claim was lost or
// the outcome is not that of the bound intent, and a *TransitionError for a status that
// cannot follow open. Finish and Settle have the StockEffect of the transition on the
// stock that the order holds, in the same write.
func (c Claim) Finish(ctx context.Context, s Store, o Outcome, at time.Time) error {
	err := Open.Transition(o.Status)
	if err == nil {
		_, err = Change(ctx, s, c.seen(o.Intent), finish(c.Lease.Owner, o, at))
	}
	return about("finish", c.Order.ID(), err)
}

// Release ends the claim of an attempt that did not settle the order, and records the
// reason and the claim's Suspect, if it has one. It returns ErrClaimLost if the claim was
// lost.
func (c Claim) Release(ctx context.Context, s Store, why Reason, at time.Time) error {
	_, err := Change(ctx, s, c.seen(c.Intent), release(c.Lease.Owner, c.Suspect, why, at))
	return about("release", c.Order.ID(), err)
}

// Settle records an outcome that the provider reported later. It is guarded by the
// status, seq, intent and stock of r as loaded: it returns ErrStale if they changed
// since, a *TransitionError for an invalid transition, and nil, changing nothing, if the
// record already has this status and intent.
func Settle(ctx context.Context, s Store, r Record, o Outcome, at time.Time) error {
	_, err := Change(ctx, s, r, settle(r, o, at))
	return about("settle", r.OrderID, err)
}

// NoteParked records that the order's message was moved to the dead-letter queue, and
// why. It changes nothing else. It returns nil, changing nothing, if there is no record,
// or the order is neither open nor refused, or the record has another fingerprint. The
// next Begin, Finish or Settle removes the note.
func NoteParked(ctx context.Context, s Store, o Order, why Reason, at time.Time) error {
	r, err := s.Load(ctx, o.ID())
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		r.Events = nil
		_, err = Change(ctx, s, r, park(o, why, at))
	}
	return about("note parked", o.ID(), err)
}

func about(verb string, id ID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s order %q: %w", verb, id, err)
}

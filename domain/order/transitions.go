package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Begin claims the order for the lease, or takes over an order whose lease has expired.
// The claim is NewClaim of the record. A refused order is open again: Begin adds the
// event of that transition in the same write.
//
// quantities are what to reserve if the order holds no stock, all or none of them; the
// claim says which the order holds, or which SKU is short. They are nil for a store that
// does not track stock. An order that holds none may have an intent, because a restored
// record does not know its stock.
//
// Begin returns the errors of CheckClaim, and ErrCorrupt for an invalid record. After any
// error that a function of this file does not name, its write may or may not have
// happened; the next Begin reads what did.
//
// A new order and a duplicate cost one call, a takeover two, and a SKU that is short one
// more.
func Begin(ctx context.Context, s Store, o Order, l Lease, quantities Quantities) (c Claim, err error) {
	var short *ShortError
	if len(quantities) > MaxSKUs {
		quantities, short = nil, &ShortError{SKU: TooManySKUs}
	}
	r, err := Change(ctx, s, Record{OrderID: o.ID()}, begin(o, l, quantities))
	if errors.As(err, &short) {
		r, err = Change(ctx, s, r, begin(o, l, nil))
	}
	if err != nil {
		return c, About("begin", o.ID(), err)
	}
	c = NewClaim(r, o)
	if short != nil && c.Stock == nil {
		c.Short, c.Unlisted = short.SKU, short.Unlisted
	}
	return c, nil
}

// begin claims the order under l, and reserves the quantities if it holds no stock.
func begin(o Order, l Lease, quantities Quantities) func(Record) (Record, error) {
	return func(r Record) (Record, error) {
		if r.Status == "" {
			r = Record{
				OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Status: Open, CreatedAt: l.From,
			}
		} else if err := CheckClaim(r, o, l); err != nil {
			return r, err
		}
		if r.Owner == l.Owner { // the answer to the write was lost
			return r, ErrUnchanged
		}
		if r.Stock == nil {
			r.Stock = quantities
		}
		if r.Status == Refused {
			r = r.With(Event{From: Refused, To: Open, Intent: r.Intent, At: l.From})
			r.Status, r.Failure = Open, ""
		}
		r.CustomerID = cmp.Or(r.CustomerID, o.CustomerID()) // a recreated record has none, an erased one another
		r.Trace = cmp.Or(r.Trace, l.Trace)
		r.ParkedAt = time.Time{}
		r.Owner, r.Until, r.Attempt = l.Owner, l.Until, r.Attempt+1
		return r.ChangedAt(l.From), nil
	}
}

// Bind records the one intent that may ever be confirmed for this order, and its mode,
// and removes the record's Suspect. It returns nil if this intent is already bound, and
// ErrClaimLost if the claim was lost or another intent is bound.
//
// It leaves the time of the recheck: each change of it writes the index twice.
func (c Claim) Bind(ctx context.Context, s Store, i Intent, at time.Time) error {
	_, err := Change(ctx, s, c.Record, func(r Record) (Record, error) {
		switch {
		case !r.heldBy(c.Owner) || r.Intent != "" && r.Intent != i.ID:
			return r, ErrClaimLost
		case r.Intent == i.ID:
			return r, ErrUnchanged
		}
		r.Intent, r.Mode, r.Suspect, r.UpdatedAt = i.ID, i.Mode, "", at
		return r, nil
	})
	return About("bind", c.Order.ID(), err)
}

// Finish settles or refuses the order, adds one event and ends the claim. It returns nil
// if the record already has this status and intent, ErrClaimLost if the claim was lost or
// the outcome is not that of the bound intent, and a *TransitionError for a status that
// cannot follow open. Finish and Settle have the StockEffect of the transition on the
// stock that the order holds, in the same write.
func (c Claim) Finish(ctx context.Context, s Store, o Outcome, at time.Time) error {
	seen := c.Record
	seen.Intent = o.Intent
	_, err := Change(ctx, s, seen, func(r Record) (Record, error) {
		if err := Open.Transition(o.Status); err != nil {
			return r, err
		}
		switch {
		case r.has(o):
			return r, ErrUnchanged
		case !r.heldBy(c.Owner) || !r.takes(o):
			return r, ErrClaimLost
		}
		return r.settled(o, at), nil
	})
	return About("finish", c.Order.ID(), err)
}

// Release ends the claim of an attempt that did not settle the order, and records the
// reason, and what the claim Found as the Suspect. It returns ErrClaimLost if the claim
// was lost.
func (c Claim) Release(ctx context.Context, s Store, why Reason, at time.Time) error {
	_, err := Change(ctx, s, c.Record, func(r Record) (Record, error) {
		if !r.heldBy(c.Owner) {
			return r, ErrClaimLost
		}
		r.Owner, r.Until, r.LastError, r.UpdatedAt = "", time.Time{}, string(why), at
		r.Suspect = cmp.Or(c.Found, r.Suspect)
		return r, nil
	})
	return About("release", c.Order.ID(), err)
}

// heldBy reports whether the record is open and still claimed by the owner.
func (r *Record) heldBy(owner string) bool { return r.Status == Open && r.Owner == owner }

// Settle records an outcome that the provider reported later. It is guarded by the
// status, seq, intent and stock of the record as it was seen: it returns ErrStale if they
// changed since, a *TransitionError for an invalid transition, and nil, changing nothing,
// if the record already has this status and intent.
func Settle(ctx context.Context, s Store, seen Record, o Outcome, at time.Time) error {
	_, err := Change(ctx, s, seen, func(r Record) (Record, error) {
		if r.has(o) {
			return r, ErrUnchanged
		}
		if err := seen.Status.Transition(o.Status); err != nil {
			return r, err
		}
		if !r.UnchangedSince(seen) || !r.takes(o) {
			return r, ErrStale
		}
		return r.settled(o, at), nil
	})
	return About("settle", seen.OrderID, err)
}

// NoteParked records that the order's message was moved to the dead-letter queue, and
// why. It changes nothing else. It returns nil, changing nothing, if there is no record,
// or the order is neither open nor refused, or the record has another fingerprint. The
// next claim or outcome removes the note.
func NoteParked(ctx context.Context, s Store, o Order, why Reason, at time.Time) error {
	seen, err := s.Load(ctx, o.ID())
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		seen.Events = nil
		_, err = Change(ctx, s, seen, func(r Record) (Record, error) {
			if r.Status != Open && r.Status != Refused || r.Fingerprint != o.Fingerprint() {
				return r, ErrUnchanged
			}
			r.LastError, r.ParkedAt, r.UpdatedAt = string(why), at, at
			return r, nil
		})
	}
	return About("note parked", o.ID(), err)
}

// settled returns the record after an outcome: with its event, without a claim, and
// without the stock that the outcome sells or gives back.
func (r Record) settled(o Outcome, at time.Time) Record {
	r = r.With(Event{From: r.Status, To: o.Status, Intent: o.Intent, Failure: o.Failure, At: at})
	r.Status, r.Failure, r.Owner, r.Until, r.ParkedAt = o.Status, o.Failure, "", time.Time{}, time.Time{}
	if StockEffectOf(o.Status, o.Intent) != StockKept {
		r.Stock = nil
	}
	return r.ChangedAt(at)
}

// With returns the record with one more event, which gets the next number.
func (r Record) With(e Event) Record {
	r.Seq++
	e.Seq = r.Seq
	r.Events = slices.Concat(r.Events, []Event{e})
	return r
}

// ChangedAt returns the record with the time of its change and of its recheck.
func (r Record) ChangedAt(at time.Time) Record {
	r.UpdatedAt, r.DueAt = at, time.Time{}
	if after, waits := r.RecheckAfter(); waits {
		r.DueAt = at.Add(after)
	}
	return r
}

// has reports whether the record shows the outcome.
func (r Record) has(o Outcome) bool { return r.Status == o.Status && r.Intent == o.Intent }

// takes reports whether the outcome is that of the record's intent, or one that needs
// none.
func (r Record) takes(o Outcome) bool {
	return r.Intent == o.Intent && (o.Intent != "" || o.Status.MayLackIntent())
}

// UnchangedSince reports whether nothing happened to the record since it was seen.
func (r Record) UnchangedSince(seen Record) bool {
	return r.Status == seen.Status && r.Seq == seen.Seq && r.Intent == seen.Intent &&
		maps.Equal(r.Stock, seen.Stock)
}

// About adds the call and its order to an error.
func About(verb string, id ID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s order %q: %w", verb, id, err)
}

package order

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// transition returns a record as a change leaves it, for the record as it is. A missing
// record has no status. See Change.
type transition func(Record) (Record, error)

// begin claims the order under l, and reserves its stock if it holds none. Its errors are
// those of CheckClaim. stock is nil if the store does not track stock, or has too few.
func begin(o Order, l Lease, quantities Quantities) transition {
	return func(r Record) (Record, error) {
		if r.Status == "" {
			r = Record{
				OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Status: Open, CreatedAt: l.From,
			}
		} else if err := CheckClaim(r, o, l); err != nil {
			return r, err
		}
		holds := r.Stock != nil || quantities == nil
		if r.Owner == l.Owner && holds { // a repetition, because the answer to the first write was lost
			return r, ErrUnchanged
		}
		if !holds {
			r.Stock = quantities
		}
		if r.Owner == l.Owner {
			return r, nil
		}
		if r.Status == Refused {
			r = reopened(r, l)
		}
		r.CustomerID = o.CustomerID() // a recreated record has none
		r.Trace = cmp.Or(r.Trace, l.Trace)
		r.ParkedAt = time.Time{}
		r.Owner, r.Until, r.Attempt = l.Owner, l.Until, r.Attempt+1
		return r.ChangedAt(l.From), nil
	}
}

// reopened returns a refused record as open, with the event of that transition.
func reopened(r Record, l Lease) Record {
	r = r.With(Event{From: Refused, To: Open, Intent: r.Intent, At: l.From})
	r.Status, r.Failure = Open, ""
	return r
}

// bind records the one intent that may ever be confirmed for the order. It leaves the
// time of the recheck: each change of it writes the index twice.
func bind(owner string, i Intent, at time.Time) transition {
	return func(r Record) (Record, error) {
		switch {
		case !r.heldBy(owner) || r.Intent != "" && r.Intent != i.ID:
			return r, ErrClaimLost
		case r.Intent == i.ID:
			return r, ErrUnchanged
		}
		r.Intent, r.Mode, r.Suspect, r.UpdatedAt = i.ID, i.Mode, "", at
		return r, nil
	}
}

// finish settles or refuses the order under the owner's claim.
func finish(owner string, o Outcome, at time.Time) transition {
	return func(r Record) (Record, error) {
		switch {
		case r.has(o):
			return r, ErrUnchanged
		case !r.heldBy(owner) || !r.takes(o):
			return r, ErrClaimLost
		}
		return r.settled(o, at), nil
	}
}

// release ends the claim and records why, with what the attempt found.
func release(owner string, suspect IntentID, why Reason, at time.Time) transition {
	return func(r Record) (Record, error) {
		if !r.heldBy(owner) {
			return r, ErrClaimLost
		}
		r.Owner, r.Until, r.LastError, r.UpdatedAt = "", time.Time{}, string(why), at
		r.Suspect = cmp.Or(suspect, r.Suspect)
		return r, nil
	}
}

// seen returns the record as the claim knows it, bound to an intent.
func (c Claim) seen(bound IntentID) Record {
	r := *c.record
	r.OrderID, r.Intent = c.Order.ID(), bound
	return r
}

// heldBy reports whether the record is open and still claimed by the owner.
func (r *Record) heldBy(owner string) bool { return r.Status == Open && r.Owner == owner }

// settle records an outcome, if the record is still as it was seen.
func settle(seen Record, o Outcome, at time.Time) transition {
	return func(r Record) (Record, error) {
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
	}
}

// park notes that the order's message was moved to the dead-letter queue.
func park(o Order, why Reason, at time.Time) transition {
	return func(r Record) (Record, error) {
		if r.Status != Open && r.Status != Refused || r.Fingerprint != o.Fingerprint() {
			return r, ErrUnchanged
		}
		r.LastError, r.ParkedAt, r.UpdatedAt = string(why), at, at
		return r, nil
	}
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

// UnchangedSince reports whether the record has the status, events, intent and stock of
// seen.
func (r Record) UnchangedSince(seen Record) bool {
	return r.Status == seen.Status && r.Seq == seen.Seq && r.Intent == seen.Intent &&
		maps.Equal(r.Stock, seen.Stock)
}

package refund

import (
	"context"
	"fmt"
	"time"

	"orderonce/domain/order"
)

// Store keeps accounts. It decides nothing: a transition is a pure function of an
// account, and Save writes what that function returned. refundtest.TestStore tests this
// contract.
type Store interface {
	// Load returns an order's account, strongly consistent. It returns order.ErrNotFound
	// without a record, and order.ErrCorrupt for an invalid one.
	Load(ctx context.Context, id order.ID) (Account, error)

	// Save writes after in place of before, with the events of after that before does not
	// have, whole or not at all. It returns the account as it is afterwards, without events.
	//
	// It returns order.ErrStale and the account that is there, if that differs from
	// before in status, seq or what is left of the charge, or the refund that changes in
	// status, owner, attempt, lease, key or time of the first request, or in anything
	// else that after changes, but for UpdatedAt. It returns nil if the account is after
	// already, because the answer to an earlier try was lost. After any other error the
	// write may or may not have happened.
	Save(ctx context.Context, before, after Account) (Account, error)
}

// transition returns an account as a change leaves it. See order.Change.
type transition func(Account) (Account, error)

// Begin claims the refund for the lease. A new one needs a charged order of which at
// least the amount is left, and reserves the amount. An open one whose lease has expired
// is taken over, whatever is left: it may have been made.
//
// It returns the errors of CheckBegin: ErrNotFound and *NotChargedError, *ExceedsError,
// ErrTooMany, *order.InvalidError for another currency than the order's, *ConflictError,
// *SettledError, *order.InProgressError. After any error that a function of this file
// does not name, its write may or may not have happened; the next Begin reads what did.
func Begin(ctx context.Context, s Store, r Request, l order.Lease) (Claim, error) {
	a, err := s.Load(ctx, r.OrderID())
	if err == nil {
		a, err = order.Change(ctx, s, a, begin(r, l))
	}
	if err != nil {
		return Claim{}, about("begin", r, err)
	}
	return Claim{Request: r, Lease: l, Account: a}, nil
}

// Mark records that a request is about to be sent: the time by the provider's clock, if
// none is recorded yet, and the sequence number of its key. It returns the claim with
// what is recorded, and order.ErrClaimLost if the claim was lost.
func (c Claim) Mark(ctx context.Context, s Store, keySeq int, now time.Time) (Claim, error) {
	a, err := order.Change(ctx, s, c.Account, c.holding(func(a Account, i Item) (Account, error) {
		if i.KeySeq = keySeq; i.SentAt.IsZero() {
			i.SentAt = now
		}
		return a.with(i), nil
	}))
	if err != nil {
		return Claim{}, about("mark", c.Request, err)
	}
	c.Account = a
	return c, nil
}

// Finish records the outcome with the order's sums, status and one event, and ends the
// claim. It returns nil if the refund already has this outcome, and order.ErrClaimLost if
// the claim was lost.
func (c Claim) Finish(ctx context.Context, s Store, o Outcome, at time.Time) error {
	settle := c.holding(func(a Account, i Item) (Account, error) { return Settled(a, i.ID, o, at) })
	_, err := order.Change(ctx, s, c.Account, func(a Account) (Account, error) {
		if i, _ := a.Item(c.Request.ID()); i.Status == o.Status && i.Refund == o.Refund {
			return a, order.ErrUnchanged
		}
		return settle(a)
	})
	return about("finish", c.Request, err)
}

// Release ends the claim of an attempt that certainly made no refund, and records the
// reason. If c's item has no SentAt, it removes the time that Mark recorded. It returns
// order.ErrClaimLost if the claim was lost.
func (c Claim) Release(ctx context.Context, s Store, why order.Reason, at time.Time) error {
	unsent := c.item().SentAt.IsZero()
	_, err := order.Change(ctx, s, c.Account, c.holding(func(a Account, i Item) (Account, error) {
		if unsent {
			i.SentAt = time.Time{}
		}
		i.Owner, i.Until, i.LastError, i.UpdatedAt = "", time.Time{}, string(why), at
		return a.with(i), nil
	}))
	return about("release", c.Request, err)
}

// Apply writes the change of one refund, with its event, and leaves every other refund
// alone. It returns the account as it is afterwards, and order.ErrStale if the account
// has another seq than before, or has the refund that before lacks: Begin and Mark change
// no seq.
func Apply(ctx context.Context, s Store, before, after Account) (Account, error) {
	a, err := order.Change(ctx, s, before, rebase(before, after))
	if err != nil {
		return a, fmt.Errorf("record a refund of order %q: %w", before.OrderID, err)
	}
	return a, nil
}

// begin claims a refund. Its errors are those of CheckBegin.
func begin(r Request, l order.Lease) transition {
	return func(a Account) (Account, error) {
		if err := CheckBegin(a, r, l); err != nil {
			return a, err
		}
		if i, known := a.Item(r.ID()); known && i.Owner == l.Owner { // a repetition: the answer was lost
			return a, order.ErrUnchanged
		}
		return Begun(a, r, l), nil
	}
}

// holding returns a transition that needs the claim: order.ErrClaimLost without it.
func (c Claim) holding(do func(Account, Item) (Account, error)) transition {
	return func(a Account) (Account, error) {
		i, known := a.Item(c.Request.ID())
		if !known || i.Owner != c.Lease.Owner || i.Status != Open {
			return a, order.ErrClaimLost
		}
		return do(a, i)
	}
}

// rebase changes an account, to which Begin may have added refunds since before was read,
// as after changes before.
func rebase(before, after Account) transition {
	return func(a Account) (Account, error) {
		id := ID(after.Events[len(after.Events)-1].Refund.ID)
		_, knew := before.Item(id)
		if _, knows := a.Item(id); a.Seq != before.Seq || knew != knows {
			return a, order.ErrStale
		}
		now := after
		now.Items = a.Items
		if i, about := after.Item(id); about {
			now = now.with(i)
		}
		now.Due = now.DueAt()
		return now, nil
	}
}

func about(verb string, r Request, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s refund %s of order %q: %w", verb, r.ID(), r.OrderID(), err)
}

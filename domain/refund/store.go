package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
)

// Store keeps accounts. It decides nothing: Save writes what a pure function of an account
// returned. refundtest.TestStore tests this contract.
type Store interface {
	// Account returns an order's account, strongly consistent. It returns
	// order.ErrNotFound without a record, and order.ErrCorrupt for an invalid one.
	Account(ctx context.Context, id order.ID) (Account, error)

	// Save writes c.After in place of c.Before, with the event if c has one, whole or not
	// at all. It returns the account as it is afterwards.
	//
	// It returns order.ErrStale and the account that is there, if that differs from
	// c.Before in status, seq or what is left of the charge, or the refund that changes in
	// status, owner, attempt or lease, or in anything else that c.After changes. It returns
	// nil if the account is c.After already, because the answer to an earlier try was lost.
	Save(ctx context.Context, c Change) (Account, error)
}

// Transitions writes the changes of accounts to a store. It implements Claims and Records.
type Transitions struct{ Store Store }

var (
	_ Claims  = Transitions{}
	_ Records = Transitions{}
)

// errUnchanged is the result of a transition that has nothing to write.
var errUnchanged = errors.New("the account shows it already")

// maxSaves is how often a change starts again on an account that another writer changed.
// Each time another refund of the order has succeeded.
const maxSaves = 20

// change saves the change that decide makes of an account. seen is the account as the
// caller knows it. If it is stale, decide starts again on the account that is there.
func (t Transitions) change(
	ctx context.Context, seen Account, decide func(Account) (Change, error),
) (Account, error) {
	for range maxSaves {
		c, err := decide(seen)
		if errors.Is(err, errUnchanged) {
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		now, err := t.Store.Save(ctx, c)
		if err == nil || !errors.Is(err, order.ErrStale) {
			return now, err
		}
		seen = now
	}
	return seen, order.ErrStale
}

// Account implements Records.
func (t Transitions) Account(ctx context.Context, id order.ID) (Account, error) {
	return t.Store.Account(ctx, id)
}

// Begin implements Claims.
func (t Transitions) Begin(ctx context.Context, r Request, l order.Lease) (Claim, error) {
	a, err := t.Store.Account(ctx, r.OrderID())
	if err == nil {
		a, err = t.change(ctx, a, begin(r, l))
	}
	if err != nil {
		return Claim{}, about("begin", r, err)
	}
	return Claim{Request: r, Lease: l, Account: a}, nil
}

// Mark implements Claims.
func (t Transitions) Mark(ctx context.Context, c Claim, keySeq int, now time.Time) (Claim, error) {
	a, err := t.change(ctx, c.Account, c.holding(func(a Account, i Item) (Change, error) {
		if i.KeySeq = keySeq; i.SentAt.IsZero() {
			i.SentAt = now
		}
		return Change{Before: a, After: a.with(i)}, nil
	}))
	if err != nil {
		return Claim{}, about("mark", c.Request, err)
	}
	c.Account = a
	return c, nil
}

// Release implements Claims.
func (t Transitions) Release(ctx context.Context, c Claim, why order.Reason, at time.Time) error {
	unsent := c.item().SentAt.IsZero()
	_, err := t.change(ctx, c.Account, c.holding(func(a Account, i Item) (Change, error) {
		if unsent {
			i.SentAt = time.Time{}
		}
		i.Owner, i.Until, i.LastError, i.UpdatedAt = "", time.Time{}, string(why), at
		return Change{Before: a, After: a.with(i)}, nil
	}))
	return about("release", c.Request, err)
}

// Finish implements Claims.
func (t Transitions) Finish(ctx context.Context, c Claim, o Outcome, at time.Time) error {
	settle := c.holding(func(a Account, i Item) (Change, error) { return Settled(a, i.ID, o, at) })
	_, err := t.change(ctx, c.Account, func(a Account) (Change, error) {
		if i, _ := a.Item(c.Request.ID()); i.Status == o.Status && i.Refund == o.Refund {
			return Change{}, errUnchanged
		}
		return settle(a)
	})
	return about("finish", c.Request, err)
}

// Apply implements Records.
func (t Transitions) Apply(ctx context.Context, c Change) error {
	if _, err := t.change(ctx, c.Before, c.Rebase); err != nil {
		return fmt.Errorf("record a refund of order %q: %w", c.Before.OrderID, err)
	}
	return nil
}

// begin returns the change of a claim. Its errors are those of CheckBegin.
func begin(r Request, l order.Lease) func(Account) (Change, error) {
	return func(a Account) (Change, error) {
		if err := CheckBegin(a, r, l); err != nil {
			return Change{}, err
		}
		if i, known := a.Item(r.ID()); known && i.Owner == l.Owner { // a repetition: the answer was lost
			return Change{}, errUnchanged
		}
		return Change{Before: a, After: Begun(a, r, l)}, nil
	}
}

// holding returns a change that needs the claim: order.ErrClaimLost without it.
func (c Claim) holding(do func(Account, Item) (Change, error)) func(Account) (Change, error) {
	return func(a Account) (Change, error) {
		i, known := a.Item(c.Request.ID())
		if !known || i.Owner != c.Lease.Owner || i.Status != Open {
			return Change{}, order.ErrClaimLost
		}
		return do(a, i)
	}
}

func about(verb string, r Request, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s refund %s of order %q: %w", verb, r.ID(), r.OrderID(), err)
}

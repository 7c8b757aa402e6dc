// Package settle records what the provider decides after the charge: a payment that took
// days, a customer who paid later, a dispute. It follows webhooks and rechecks the orders
// that wait, and it restores a record that the store lost. It never moves money, and a
// worker that charges does not need it.
package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
)

// Hint is a reason to look at an order: a webhook, or an order that is due for a recheck.
// It is never a fact. Follow reads the provider before it writes anything, so the age,
// the order and the number of hints do not matter.
type Hint struct {
	OrderID order.ID       // "" if the hint names only the intent
	Scope   order.Scope    // "" if the hint does not say
	Intent  order.IntentID // "" if the hint names only the order
	Status  order.Status   // the status that the record should have; "" if the hint does not say

	// Disputed means that the intent's charge is disputed. See DisputeFollower.
	Disputed bool
	// Refunded means that money of the intent's charge went back, or came back. See package
	// refund.
	Refunded bool
}

// Followed is what came of a hint.
type Followed string

// The results of Follow.
const (
	HintForeign   Followed = "foreign"   // of another scope or mode, or not of an order
	HintUnbound   Followed = "unbound"   // of an intent that is not the order's, and that took no money
	HintAgrees    Followed = "agrees"    // the record already shows it; the provider was not called
	HintLeased    Followed = "leased"    // a worker holds the order and will record it
	HintNoIntent  Followed = "no_intent" // the order has no intent: its message must come back
	HintUnchanged Followed = "unchanged" // the provider reports nothing that the record does not show
	HintSettled   Followed = "settled"   // the record was settled

	HintDisputed      Followed = "disputed"       // an open dispute was recorded
	HintDisputeClosed Followed = "dispute_closed" // a dispute was recorded as won or lost
)

// Follower acts on hints.
type Follower struct {
	Store    order.Store
	Payments order.Payments
	Scope    order.Scope
	Mode     order.Mode // of the provider's key, which cannot read an intent of another one; "": not compared
	Now      func() time.Time
}

// Follow settles the order of a hint if the provider reports an outcome that the record
// does not show. It never moves money. A hint that the record already shows costs one
// Load; any other costs one Read and at most one Settle more.
//
// An open order with a running lease is left to its worker, unless its charge is
// disputed or refunded: the worker would settle it, but no other hint may come.
// Follow also returns the record as it was loaded. Errors: those of Store and Payments,
// and *MismatchError, also for money that an intent took which is not the order's.
func (f *Follower) Follow(ctx context.Context, h Hint) (Followed, order.Record, error) {
	if h.Scope != "" && h.Scope != f.Scope {
		return HintForeign, order.Record{}, nil
	}
	if h.OrderID == "" {
		i, err := f.Payments.Read(ctx, h.Intent)
		if err != nil {
			return "", order.Record{}, fmt.Errorf("read intent %s: %w", h.Intent, err)
		}
		if i.Scope != f.Scope || !order.ValidID(string(i.OrderID)) {
			return HintForeign, order.Record{}, nil
		}
		h.OrderID = i.OrderID
	}
	followed, r, err := f.follow(ctx, h)
	if errors.Is(err, order.ErrStale) { // the order's worker, or another hint, was faster
		return f.follow(ctx, h)
	}
	return followed, r, err
}

func (f *Follower) follow(ctx context.Context, h Hint) (Followed, order.Record, error) {
	r, err := f.Store.Load(ctx, h.OrderID)
	if err != nil {
		return "", order.Record{}, fmt.Errorf("load order %s: %w", h.OrderID, err)
	}
	switch {
	case f.Mode != "" && r.Mode != "" && r.Mode != f.Mode:
		return HintForeign, r, nil
	case h.Intent != "" && r.Intent != h.Intent:
		followed, err := unbound(r, h)
		return followed, r, err
	case h.Status != "" && !slices.Contains(r.Status.Next(), h.Status):
		return HintAgrees, r, nil
	case r.Status == order.Open && order.Held(r.Until, f.Now()) && !h.Disputed && !h.Refunded:
		return HintLeased, r, nil
	case r.Intent == "":
		return HintNoIntent, r, nil
	}
	now, err := settleFrom(ctx, f.Store, f.Payments, f.Scope, r, f.Now())
	switch {
	case err != nil:
		return "", r, err
	case now:
		return HintSettled, r, nil
	}
	return HintUnchanged, r, nil
}

// unbound returns the result of a hint about an intent that is not the record's. Only
// another program can have confirmed it, because a worker confirms only a bound intent.
func unbound(r order.Record, h Hint) (Followed, error) {
	if h.Status != order.Paid && h.Status != order.Pending {
		return HintUnbound, nil
	}
	return "", &order.MismatchError{Intent: h.Intent, Field: "intent", Got: string(h.Intent), Want: string(r.Intent)}
}

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
	OrderID  order.ID       // "" if the hint names only the intent
	Scope    order.Scope    // "" if the hint does not say
	Intent   order.IntentID // "" if the hint names only the order
	Status   order.Status   // the status that the record should have; "" if the hint does not say
	Disputed bool           // the intent's charge is disputed
	Refunded bool           // money of the intent's charge went back, or came back
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
	HintRefunded      Followed = "refunded"       // a change of the order's refunds was recorded
)

// Disputes is the payment provider's list of disputes. ordertest.TestDisputes tests this
// contract.
type Disputes interface {
	// Disputes returns the disputes of the intent's charge in their current state, in any
	// order. Its errors are those of Payments.Read.
	Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error)
}

// Follower acts on hints.
type Follower struct {
	Store    order.Store
	Payments order.Payments
	Scope    order.Scope
	Mode     order.Mode // of the provider's key, which cannot read an intent of another one; "": not compared
	Now      func() time.Time

	Disputes Disputes // nil: a dispute is not recorded
	// Refunds records what became of an order's refunds, moves no money, and returns the
	// order's number of events. nil: they are not recorded. See refund.Refresher.
	Refunds func(context.Context, order.ID) (seq int, err error)
}

// Follow settles the order of a hint if the provider reports an outcome that the record
// does not show, and then records the newest dispute, or the refunds, if the hint is of
// one. It never moves money. A hint that the record already shows costs one Load; any
// other costs one Read and at most one Settle more. Only an audit (scripts/orders) finds
// a dispute whose hint never comes.
//
// An open order with a running lease is left to its worker, unless its charge is
// disputed or refunded: the worker would settle it, but no other hint may come.
//
// Follow also returns the record as it was loaded. Errors: those of its ports and of
// RecordDispute, and *MismatchError, also for money that an intent took which is not the
// order's. After an error the hint must come again.
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
		followed, r, err = f.follow(ctx, h)
	}
	switch {
	case err != nil || followed == HintForeign:
	case h.Disputed && f.Disputes != nil:
		return f.recordDispute(ctx, r, followed)
	case h.Refunded && f.Refunds != nil:
		followed, err = f.recordRefunds(ctx, r, followed)
	}
	return followed, r, err
}

// follow settles the order of a hint that names it.
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
	case r.Status == order.Open && order.LeaseRunning(r.Until, f.Now()) && !h.Disputed && !h.Refunded:
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
	return "", &order.MismatchError{
		Intent: h.Intent, Field: "intent", Got: string(h.Intent), Want: string(r.Intent),
	}
}

// recordDispute records the newest dispute of an order. It returns followed if the record
// shows it already.
//
// The disputes are listed after the record was loaded. So the guard of RecordDispute
// refuses a list that is older than what another hint has recorded meanwhile.
func (f *Follower) recordDispute(
	ctx context.Context, r order.Record, followed Followed,
) (Followed, order.Record, error) {
	var err error
	if id := r.OrderID; followed == HintSettled {
		if r, err = f.Store.Load(ctx, id); err != nil {
			return "", r, fmt.Errorf("load order %s: %w", id, err)
		}
	}
	all, err := f.Disputes.Disputes(ctx, r.Intent)
	if err != nil {
		return "", r, fmt.Errorf("list disputes of order %s: %w", r.OrderID, err)
	}
	var newest order.Dispute
	for _, d := range all {
		if d.CreatedAt.After(newest.CreatedAt) {
			newest = d
		}
	}
	if newest.ID == "" || newest.Is(r.Dispute) {
		return followed, r, nil
	}
	if err := RecordDispute(ctx, f.Store, r, newest, f.Now()); err != nil {
		return "", r, err
	}
	if newest.Status == order.DisputeOpen {
		return HintDisputed, r, nil
	}
	return HintDisputeClosed, r, nil
}

// recordRefunds records what became of an order's refunds. It returns followed if that
// changed nothing.
func (f *Follower) recordRefunds(ctx context.Context, r order.Record, followed Followed) (Followed, error) {
	seq, err := f.Refunds(ctx, r.OrderID)
	if errors.Is(err, order.ErrStale) { // a worker, or another hint, was faster
		seq, err = f.Refunds(ctx, r.OrderID)
	}
	if followed == HintSettled {
		r.Seq++
	}
	if err == nil && seq > r.Seq {
		return HintRefunded, nil
	}
	return followed, err
}

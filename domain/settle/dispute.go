package settle

import (
	"context"
	"fmt"

	"orderonce/domain/order"
)

// Disputes is the payment provider's list of disputes. ordertest.TestDisputes tests this
// contract.
type Disputes interface {
	// Disputes returns the disputes of the intent's charge in their current state, in any
	// order. Its errors are those of Payments.Read.
	Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error)
}

// unrecorded returns the newest dispute if the record does not show it.
func unrecorded(r order.Record, all []order.Dispute) (d order.Dispute, found bool) {
	for _, other := range all {
		if other.CreatedAt.After(d.CreatedAt) {
			d = other
		}
	}
	return d, d.ID != "" && !d.Is(r.Dispute)
}

// DisputeFollower is a Follower that also acts on hints of disputes. Only an audit
// (scripts/orders) finds a dispute whose hint never comes.
type DisputeFollower struct {
	Follower
	Disputes Disputes
}

// Follow is Follower.Follow, and for a hint of a dispute it then records the newest
// dispute of the order's intent. It never moves money. Errors: those of Follower.Follow,
// Disputes and RecordDispute. After an error the hint must come again.
func (f *DisputeFollower) Follow(ctx context.Context, h Hint) (Followed, order.Record, error) {
	followed, r, err := f.Follower.Follow(ctx, h)
	if err != nil || !h.Disputed || followed == HintForeign {
		return followed, r, err
	}
	if followed == HintSettled {
		id := r.OrderID
		if r, err = f.Store.Load(ctx, id); err != nil {
			return "", r, fmt.Errorf("load order %s: %w", id, err)
		}
	}
	followed, err = f.record(ctx, r, followed)
	return followed, r, err
}

// record records the newest dispute of an order. It returns followed if the record shows
// it already.
//
// The disputes are listed after the record was loaded. So the guard of RecordDispute
// refuses a list that is older than what another hint has recorded meanwhile.
func (f *DisputeFollower) record(ctx context.Context, r order.Record, followed Followed) (Followed, error) {
	all, err := f.Disputes.Disputes(ctx, r.Intent)
	if err != nil {
		return "", fmt.Errorf("list disputes of order %s: %w", r.OrderID, err)
	}
	d, found := unrecorded(r, all)
	if !found {
		return followed, nil
	}
	if err := RecordDispute(ctx, f.Store, r, d, f.Now()); err != nil {
		return "", err
	}
	if d.Status == order.DisputeOpen {
		return HintDisputed, nil
	}
	return HintDisputeClosed, nil
}

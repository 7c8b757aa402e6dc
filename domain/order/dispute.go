package order

import (
	"context"
	"fmt"
	"time"
)

// DisputeID is the provider's id of a dispute.
type DisputeID string

// DisputeStatus is what has come of a dispute.
type DisputeStatus string

// The statuses of a dispute.
const (
	DisputeOpen DisputeStatus = "open" // the bank has not decided
	DisputeWon  DisputeStatus = "won"  // the merchant keeps the money
	DisputeLost DisputeStatus = "lost" // the customer has the money back
)

// Dispute is a customer's objection to a charge, which the bank decides. It does not
// change the order's status.
type Dispute struct {
	ID        DisputeID // "" if the charge is not disputed
	Status    DisputeStatus
	CreatedAt time.Time // by the provider's clock
}

// Is reports whether d and other are one dispute in the same status.
func (d Dispute) Is(other Dispute) bool { return d.ID == other.ID && d.Status == other.Status }

// validate returns ErrUnknownVersion for a status that this release does not know.
func (d Dispute) validate() error {
	switch d.Status {
	case DisputeOpen, DisputeWon, DisputeLost:
		return nil
	}
	if d == (Dispute{}) {
		return nil
	}
	return fmt.Errorf("dispute status %q: %w", d.Status, ErrUnknownVersion)
}

// Disputes is the payment provider's list of disputes. ordertest.TestDisputes tests this
// contract.
type Disputes interface {
	// Disputes returns the disputes of the intent's charge in their current state, in any
	// order. Its errors are those of Payments.Read.
	Disputes(ctx context.Context, id IntentID) ([]Dispute, error)
}

// Disputed returns the record as RecordDispute leaves it, with the event of the dispute.
func Disputed(r Record, d Dispute, at time.Time) Record {
	r = r.with(Event{From: r.Status, To: r.Status, Intent: r.Intent, Dispute: d, At: at})
	r.Dispute, r.UpdatedAt = d, at
	return r
}

// unrecorded returns the newest dispute if the record does not show it.
func unrecorded(r Record, all []Dispute) (d Dispute, found bool) {
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
func (f *DisputeFollower) Follow(ctx context.Context, h Hint) (Followed, Record, error) {
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
func (f *DisputeFollower) record(ctx context.Context, r Record, followed Followed) (Followed, error) {
	all, err := f.Disputes.Disputes(ctx, r.Intent)
	if err != nil {
		return "", fmt.Errorf("list disputes of order %s: %w", r.OrderID, err)
	}
	d, found := unrecorded(r, all)
	if !found {
		return followed, nil
	}
	if err := RecordDispute(ctx, f.Store, r, d, f.Now()); err != nil {
		return "", fmt.Errorf("record dispute %s of order %s: %w", d.ID, r.OrderID, err)
	}
	if d.Status == DisputeOpen {
		return HintDisputed, nil
	}
	return HintDisputeClosed, nil
}

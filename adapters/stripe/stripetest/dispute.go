package stripetest

import (
	"fmt"
	"slices"
	"time"
)

// DisputeStatus is a dispute's status (docs.stripe.com/api/disputes/object). Inquiries
// and reviews are not modeled.
type DisputeStatus string

// The statuses of disputes.
const (
	DisputeNeedsResponse DisputeStatus = "needs_response"
	DisputeWon           DisputeStatus = "won"
	DisputeLost          DisputeStatus = "lost"
)

// Dispute is a dispute of a charge at one moment. It is immutable: every change makes
// another Dispute.
type Dispute struct {
	ID       string
	Charge   string // The id of the disputed charge.
	Intent   string
	Amount   int64
	Currency string
	Status   DisputeStatus
	Created  time.Time
}

// wire is the dispute as Stripe sends it (docs.stripe.com/api/disputes/object).
func (d *Dispute) wire() object {
	return object{
		"id": d.ID, "object": "dispute", "amount": d.Amount, "charge": d.Charge, "created": d.Created.Unix(),
		"currency": d.Currency, "livemode": false, "metadata": object{}, "payment_intent": d.Intent,
		"reason": "fraudulent", "is_charge_refundable": false, "status": d.Status,
	}
}

// Disputes returns the current version of every dispute, oldest first. They are
// read-only.
func (m *Machine) Disputes() []*Dispute { return slices.Clone(m.disputes) }

// OpenDispute disputes the charge of a paid intent, as its customer can at the bank. A
// charge may be disputed several times (pm_card_createMultipleDisputes). The event
// charge.dispute.funds_withdrawn, which follows at Stripe, is not modeled.
func (m *Machine) OpenDispute(now time.Time, intent string) (*Dispute, error) {
	i, err := m.unlocked(intent, is(StatusSucceeded))
	if err != nil {
		return nil, err
	}
	m.latestCharge(i).Disputed = true
	d := &Dispute{
		ID: fmt.Sprintf("du_%06d", len(m.disputes)+1), Charge: i.LatestCharge, Intent: i.ID,
		Amount: i.Amount, Currency: i.Currency, Status: DisputeNeedsResponse, Created: now,
	}
	m.disputes = append(m.disputes, d)
	m.emit(Event{Type: "charge.dispute.created", Intent: i, object: d.wire()})
	return d, nil
}

// CloseDispute ends an open dispute, as the bank does: the customer's charge stands, or
// the customer gets the money back. The charge remains disputed.
func (m *Machine) CloseDispute(id string, won bool) error {
	n := slices.IndexFunc(m.disputes, func(d *Dispute) bool {
		return d.ID == id && d.Status == DisputeNeedsResponse
	})
	if n < 0 {
		return fmt.Errorf("%w: no open dispute %q", ErrNotAllowed, id)
	}
	closed := *m.disputes[n]
	if closed.Status = DisputeLost; won {
		closed.Status = DisputeWon
	}
	m.disputes[n] = &closed
	m.emit(Event{Type: "charge.dispute.closed", Intent: m.Intent(closed.Intent), object: closed.wire()})
	return nil
}

// chargedBack reports whether a charge has a dispute that was not won.
func (m *Machine) chargedBack(charge string) bool {
	return slices.ContainsFunc(m.disputes, func(d *Dispute) bool {
		return d.Charge == charge && d.Status != DisputeWon
	})
}

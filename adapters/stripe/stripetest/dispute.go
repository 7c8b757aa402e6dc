package stripetest

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// disputesRoot is the path of the list of disputes.
const disputesRoot = "/v1/disputes"

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
	Account  string // See call.account.
	Charge   string // The id of the disputed charge.
	Intent   string
	Amount   int64
	Currency string
	Status   DisputeStatus
	Created  time.Time
}

// ErrNoDispute means that no open dispute has the id.
var ErrNoDispute = errors.New("open dispute not found")

// Disputes returns the current version of every dispute, oldest first. They are
// read-only.
func (m *Machine) Disputes() []*Dispute { return slices.Clone(m.disputes) }

// OpenDispute disputes the charge of a paid intent, as its customer can at the bank. A
// charge may be disputed several times (pm_card_createMultipleDisputes). The event
// charge.dispute.funds_withdrawn, which follows at Stripe, is not modeled. It returns
// ErrNoIntent, ErrLocked or a *StateError.
func (m *Machine) OpenDispute(now time.Time, intent string) (*Dispute, error) {
	i, err := m.unlocked(intent, func(s Status) bool { return s == StatusSucceeded })
	if err != nil {
		return nil, err
	}
	m.latestCharge(i).Disputed = true
	d := &Dispute{
		ID: fmt.Sprintf("du_%06d", len(m.disputes)+1), Account: i.Account, Charge: i.LatestCharge, Intent: i.ID,
		Amount: i.Amount, Currency: i.Currency, Status: DisputeNeedsResponse, Created: now,
	}
	m.disputes = append(m.disputes, d)
	m.emit(Event{Type: "charge.dispute.created", Intent: i, Dispute: d})
	return d, nil
}

// CloseDispute ends an open dispute, as the bank does: the customer's charge stands, or
// the customer gets the money back. The charge remains disputed. It returns ErrNoDispute.
func (m *Machine) CloseDispute(id string, won bool) error {
	n := slices.IndexFunc(m.disputes, func(d *Dispute) bool {
		return d.ID == id && d.Status == DisputeNeedsResponse
	})
	if n < 0 {
		return ErrNoDispute
	}
	closed := *m.disputes[n]
	if closed.Status = DisputeLost; won {
		closed.Status = DisputeWon
	}
	m.disputes[n] = &closed
	m.emit(Event{Type: "charge.dispute.closed", Intent: m.Intent(closed.Intent), Dispute: &closed})
	return nil
}

// readDisputes checks the parameters of docs.stripe.com/api/disputes/list.
func (m *Machine) readDisputes(c *call) *Response {
	if denied := c.permit(m.rules.NoDisputes, "rak_dispute_read"); denied != nil {
		return denied
	}
	return readObjects(m, c, m.disputes, "dispute")
}

// disputeJSON is a dispute, as far as it is modeled
// (docs.stripe.com/api/disputes/object).
type disputeJSON struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        string            `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	Livemode      bool              `json:"livemode"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent string            `json:"payment_intent"`
	Reason        string            `json:"reason"`
	Refundable    bool              `json:"is_charge_refundable"`
	Status        DisputeStatus     `json:"status"`
}

func wireDispute(d *Dispute) *disputeJSON {
	return &disputeJSON{
		ID: d.ID, Object: "dispute", Amount: d.Amount, Charge: d.Charge, Created: d.Created.Unix(),
		Currency: d.Currency, Metadata: map[string]string{}, PaymentIntent: d.Intent, Reason: "fraudulent",
		Status: d.Status,
	}
}

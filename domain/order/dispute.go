package order

import (
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

package order

import "time"

// Event is one transition of an order, or a change of its dispute or of one of its
// refunds. The events are the order's history and its outbox.
type Event struct {
	Seq      int
	From, To Status
	Intent   IntentID
	Failure  string
	Dispute  Dispute     // zero unless it is about a dispute, which changes no status
	Refund   RefundEvent // zero unless it is about a refund
	At       time.Time
}

// RefundEvent is the part of an event that is about a refund. Package refund has the
// statuses.
type RefundEvent struct {
	ID     string // the producer's id; "" of what others gave back
	Status string
	Amount int64
}

// RefundedOutside is the status of an event about money that others gave back.
const RefundedOutside = "outside"

// Type names what happened, such as "order.paid".
func (e Event) Type() string {
	switch {
	case e.Refund.Status == RefundedOutside:
		return "order.refunded_outside"
	case e.Refund.Status != "":
		return "refund." + e.Refund.Status
	case e.Dispute.Status == DisputeOpen:
		return "order.disputed"
	case e.Dispute.Status != "":
		return "order.dispute_" + string(e.Dispute.Status)
	}
	return "order." + string(e.To)
}

// Validate returns a *TransitionError if the event is an invalid transition. A dispute
// must not change the status, and a refund is of an order that was charged.
func (e Event) Validate() error {
	err := e.From.Transition(e.To)
	switch {
	case e.Refund != (RefundEvent{}):
		err = e.invalidUnless(e.From.Charged() && e.To.Charged())
	case e.Dispute != (Dispute{}):
		err = e.invalidUnless(e.From == e.To)
	}
	return err
}

func (e Event) invalidUnless(valid bool) error {
	if valid {
		return nil
	}
	return &TransitionError{From: e.From, To: e.To}
}

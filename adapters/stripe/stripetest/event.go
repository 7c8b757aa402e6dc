package stripetest

import (
	"fmt"
	"slices"
	"time"
)

// Event is a change of an intent, or of a dispute or refund of its charge, that Stripe
// reports to webhook endpoints. At most one of Dispute, Refund and Charge is set.
type Event struct {
	Number  int // from 1, in the order of the changes
	Type    string
	Intent  *Intent  // as it was just after the change
	Dispute *Dispute // as it was just after the change, as are these:
	Refund  *Refund
	Charge  *Charge
}

// Events returns every event so far. docs.stripe.com/webhooks: Stripe does not promise to
// deliver them in this order.
func (m *Machine) Events() []Event { return slices.Clip(m.events) }

// emit adds an event under the next number.
func (m *Machine) emit(e Event) {
	e.Number = len(m.events) + 1
	m.events = append(m.events, e)
}

// eventOf returns the type of the event of a change, or "" if it has none
// (docs.stripe.com/api/events/types).
func eventOf(old, now *Intent) string {
	if old.Status == now.Status && old.LastError == now.LastError {
		return ""
	}
	switch now.Status {
	case StatusSucceeded:
		return "payment_intent.succeeded"
	case StatusCanceled:
		return "payment_intent.canceled"
	case StatusProcessing:
		return "payment_intent.processing"
	case StatusRequiresAction:
		return "payment_intent.requires_action"
	case StatusRequiresPaymentMethod:
		if now.LastError != nil {
			return "payment_intent.payment_failed"
		}
	case StatusRequiresConfirmation:
	}
	return ""
}

// ID returns the event's id, which is the same in every delivery.
func (e Event) ID() string { return fmt.Sprintf("evt_%06d", e.Number) }

// Body returns the event as it is sent (docs.stripe.com/api/events/object).
func (e Event) Body(created time.Time) []byte {
	object := any(wireIntent(e.Intent))
	switch {
	case e.Dispute != nil:
		object = wireDispute(e.Dispute)
	case e.Refund != nil:
		object = wireRefund(e.Refund)
	case e.Charge != nil:
		object = wireCharge(e.Intent.LatestCharge, e.Charge)
	}
	return marshal(map[string]any{
		"id": e.ID(), "object": "event", "api_version": APIVersion, "created": created.Unix(), "livemode": false,
		"pending_webhooks": 1, "type": e.Type, "data": map[string]any{"object": object},
	})
}

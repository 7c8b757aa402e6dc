package stripetest

import (
	"fmt"
	"slices"
	"time"
)

// Event is a change of an intent, or of a dispute or refund of its charge, that Stripe
// reports to webhook endpoints.
type Event struct {
	Number int // from 1, in the order of the changes
	Type   string
	Intent *Intent // as it was just after the change
	Refund *Refund // likewise, if the event is about a refund

	object object // what the event is about, unless it is the intent
}

// Events returns every event so far. docs.stripe.com/webhooks: Stripe does not promise to
// deliver them in this order.
func (m *Machine) Events() []Event { return slices.Clip(m.events) }

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
	case StatusSucceeded, StatusCanceled, StatusProcessing:
		return "payment_intent." + string(now.Status)
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
	about := e.object
	if about == nil {
		about = e.Intent.wire()
	}
	return marshal(object{
		"id": e.ID(), "object": "event", "api_version": APIVersion, "created": created.Unix(), "livemode": false,
		"pending_webhooks": 1, "type": e.Type, "data": object{"object": about},
	})
}

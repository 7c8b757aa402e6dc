package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/settle"
)

var errNotAnEvent = errors.New("not a Stripe event")

// event is a snapshot event (docs.stripe.com/api/events/object) or a thin one
// (docs.stripe.com/event-destinations#thin-events), as far as it is read. Its content is
// a hint to look at an order, so neither its API version nor its age matters.
type event struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"` // "event", or "v2.core.event" of a thin one
	Type    string          `json:"type"`
	Created json.RawMessage `json:"created"` // seconds since 1970, or RFC 3339 in a thin one
	Data    struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
	Related *struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	} `json:"related_object"`
}

// parse parses the body of a webhook request. The signature must be verified before, over
// the same bytes.
func parse(body []byte) (e event, err error) {
	if err := json.Unmarshal(body, &e); err != nil {
		return event{}, fmt.Errorf("%w: invalid JSON", errNotAnEvent)
	}
	if e.ID == "" || e.Type == "" || e.Object != "event" && e.Object != "v2.core.event" {
		return event{}, fmt.Errorf("%w: want an object with id and type", errNotAnEvent)
	}
	return e, nil
}

// hint is empty unless the event is about a PaymentIntent, its dispute or its refund.
func (e *event) hint() settle.Hint {
	switch e.Type {
	case "payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.canceled",
		"payment_intent.processing", "payment_intent.requires_action":
		return e.intentHint()
	case "refund.created", "refund.updated", "refund.failed", "charge.refunded", "charge.refund.updated":
		return e.chargeHint(settle.Hint{Refunded: true})
	case "charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed":
		return e.chargeHint(settle.Hint{Disputed: true})
	}
	return settle.Hint{}
}

func (e *event) created() time.Time {
	var seconds int64
	if json.Unmarshal(e.Created, &seconds) == nil {
		return time.Unix(seconds, 0)
	}
	var t time.Time
	_ = json.Unmarshal(e.Created, &t) // an unreadable time counts as long ago
	return t
}

// intentHint returns the hint of an event about a PaymentIntent: without an order, which
// costs another read of Stripe, if only the id is readable, as in another API version.
// There is none if its metadata name no order.
func (e *event) intentHint() settle.Hint {
	if e.Related != nil && e.Related.Type == "payment_intent" {
		return settle.Hint{Intent: order.IntentID(e.Related.ID)}
	}
	var id struct {
		ID order.IntentID `json:"id"`
	}
	var object stripe.PaymentIntent
	if json.Unmarshal(e.Data.Object, &id) != nil {
		return settle.Hint{}
	}
	if json.Unmarshal(e.Data.Object, &object) != nil {
		return settle.Hint{Intent: id.ID}
	}
	intent, err := object.Order()
	if err != nil || !order.ValidID(string(intent.OrderID)) {
		return settle.Hint{}
	}
	outcome, _ := order.OutcomeOf(intent) // without a status unless it is settled
	return settle.Hint{OrderID: intent.OrderID, Scope: intent.Scope, Intent: id.ID, Status: outcome.Status}
}

// chargeHint completes the hint of an event about a refund, a dispute or their charge.
// Each names the PaymentIntent, which was paid. A refund of ours also names the order,
// and a charge has the metadata of its intent. Thin events name only the dispute, and are
// ignored: the endpoint of docs/guides/deploy.md receives snapshots.
func (e *event) chargeHint(hint settle.Hint) settle.Hint {
	var object struct {
		Intent   order.IntentID    `json:"payment_intent"`
		Metadata map[string]string `json:"metadata"`
	}
	if json.Unmarshal(e.Data.Object, &object) != nil || object.Intent == "" {
		return settle.Hint{}
	}
	hint.Intent, hint.Status = object.Intent, order.Paid
	if id := object.Metadata[stripe.MetaOrder]; hint.Refunded && order.ValidID(id) {
		hint.OrderID, hint.Scope = order.ID(id), order.Scope(object.Metadata[stripe.MetaScope])
	}
	return hint
}

// Package eventbridge publishes the events of orders on an EventBridge bus, and decodes
// them for our own consumers. It implements outbox.Bus. It decides what an event looks
// like outside of this system; docs/reference/events.md describes it. It does not know
// which events there are to publish, in which calls, and what happens after a failure.
package eventbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

var _ outbox.Bus = (*Bus)(nil)

// Bus is an event bus. It is safe for concurrent use.
type Bus struct {
	client       *eventbridge.Client
	name, source string
}

// New returns the bus with a name or an ARN. The source of its events is "orderonce." and
// the scope. It needs the permission events:PutEvents on the bus.
//
// EventBridge accepts events for a bus that does not exist, and drops them:
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html.
func New(cfg aws.Config, name string, scope order.Scope) *Bus {
	return &Bus{
		client: eventbridge.NewFromConfig(cfg), name: name, source: sourceOf(scope),
	}
}

func sourceOf(scope order.Scope) string { return "orderonce." + string(scope) }

// detail is what an event holds. A change that breaks a consumer gets another version.
type detail struct {
	Version     int    `json:"version"`
	OrderID     string `json:"orderId"`
	Seq         int    `json:"seq"`
	Type        string `json:"type"`
	From        string `json:"from"`
	Status      string `json:"status"`
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Intent      string `json:"paymentIntentId,omitempty"`
	Reason      string `json:"reason,omitempty"`
	DisputeID   string `json:"disputeId,omitempty"`
	RefundID    string `json:"refundId,omitempty"`
	Refunded    int64  `json:"refundAmount,omitempty"`
	OccurredAt  string `json:"occurredAt"`
	Traceparent string `json:"traceparent,omitempty"`
}

// rfc3339Millis is RFC 3339 with milliseconds, always three digits.
const rfc3339Millis = "2006-01-02T15:04:05.000Z07:00"

func newDetail(e outbox.Event) detail {
	return detail{
		Version: 1, OrderID: string(e.OrderID), Seq: e.Event.Seq,
		Type: e.Type(), From: string(e.Event.From), Status: string(e.Event.To),
		Amount: e.Total.Amount, Currency: string(e.Total.Currency),
		Intent: string(e.Event.Intent), Reason: e.Event.Failure,
		DisputeID: string(e.Event.Dispute.ID), RefundID: e.Event.Refund.ID, Refunded: e.Event.Refund.Amount,
		OccurredAt:  e.Event.At.UTC().Format(rfc3339Millis),
		Traceparent: string(e.Trace),
	}
}

// detailType returns the detail-type of an event, such as "Order Action Required" for
// "order.action_required".
func detailType(of string) string {
	if of == "order.open" {
		return "Order Reopened"
	}
	words := strings.FieldsFunc(of, func(r rune) bool { return r == '.' || r == '_' })
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, " ")
}

func (b *Bus) entry(e outbox.Event) types.PutEventsRequestEntry {
	text, _ := json.Marshal(newDetail(e)) // strings and integers always encode
	if len(e.More) > 0 {
		text = addFields(text, e.More)
	}
	return types.PutEventsRequestEntry{
		EventBusName: &b.name, Source: &b.source, DetailType: aws.String(detailType(e.Type())),
		Detail: aws.String(string(text)), Time: &e.Event.At,
	}
}

// addFields adds what a newer release recorded to a detail, whose own fields prevail.
func addFields(text []byte, more map[string]any) []byte {
	all := make(map[string]json.RawMessage, len(more))
	for name, value := range more {
		all[name], _ = json.Marshal(value) // strings and numbers
	}
	_ = json.Unmarshal(text, &all) // it was encoded a moment ago
	text, _ = json.Marshal(all)
	return text
}

// Put implements outbox.Bus with one PutEvents. Its limits are 10 entries and less than
// 1 MB together; an event has about 500 bytes. The response has an entry for each of the
// request, without an id if it was refused.
//
// Source: https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html.
func (b *Bus) Put(ctx context.Context, events []outbox.Event) (failed []int, err error) {
	in := &eventbridge.PutEventsInput{Entries: make([]types.PutEventsRequestEntry, len(events))}
	for i, e := range events {
		in.Entries[i] = b.entry(e)
	}
	out, err := b.client.PutEvents(ctx, in)
	switch {
	case err != nil:
		return nil, fmt.Errorf("put %d events: %w", len(events), err)
	case len(out.Entries) != len(events):
		return nil, fmt.Errorf("response of PutEvents: %d entries for %d events", len(out.Entries), len(events))
	}
	for i, entry := range out.Entries {
		if aws.ToString(entry.EventId) != "" {
			continue
		}
		if failed = append(failed, i); err == nil {
			code, message := aws.ToString(entry.ErrorCode), aws.ToString(entry.ErrorMessage)
			err = fmt.Errorf("%w: %s: %s", outbox.ErrRefused, code, message)
		}
	}
	return failed, err
}

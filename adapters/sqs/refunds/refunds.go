// Package refunds reads refunds from messages, and makes tasks of them. It decides
// nothing about a refund.
package refunds

import (
	"context"
	"log/slog"
	"time"

	"orderonce/adapters/internal/strictjson"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/internal/decode"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// MetricRefunds counts refunds that a delivery settled, by Reason;
// docs/reference/metrics.md explains it.
const MetricRefunds = "Refunds"

// Type is the "type" of a refund's message.
const Type = "refund"

// message is a refund in JSON. Amount is a pointer, because a missing amount is not an
// amount of zero.
type message struct {
	Type     string  `json:"type"`
	OrderID  string  `json:"orderId"`
	RefundID string  `json:"refundId"`
	Amount   *int64  `json:"amount"   validate:"required"`
	Currency *string `json:"currency" validate:"omitnil,min=1"`
	Reason   string  `json:"reason"`
}

// Kind implements decode.Message.
func (m message) Kind() string { return m.Type }

// Domain implements decode.Message.
func (m message) Domain() (refund.Request, error) {
	draft := refund.Draft{
		OrderID: m.OrderID, RefundID: m.RefundID, Amount: decode.Number(m.Amount), Reason: m.Reason,
	}
	if m.Currency != nil {
		draft.Currency = *m.Currency
	}
	return refund.New(draft)
}

// Decoder decodes and validates refunds in JSON.
type Decoder = decode.Decoder[message, refund.Request]

// NewDecoder returns a decoder.
func NewDecoder() *Decoder {
	return decode.New[message](Type, func(string) error {
		return &strictjson.Error{Problem: `type: want "refund"; send orders to the order queue`}
	})
}

// Tasks turns refunds into tasks. All fields are required.
type Tasks struct {
	Decoder *Decoder
	// Process makes a refund of an order.
	Process func(ctx context.Context, r refund.Request, l order.Lease) order.Result
}

// Task implements sqs.Handler.Decode for a queue of refunds alone.
func (t Tasks) Task(body string) (sqs.Task, error) {
	r, err := t.Decoder.Decode(body)
	if err != nil {
		return sqs.Task{}, err
	}
	return sqs.Task{ // which leaves its order as it is when it is parked
		ID:    r.OrderID(),
		Attrs: []slog.Attr{slog.String("refund_id", string(r.ID()))},
		Run: func(ctx context.Context, _ sqs.Delivery, l order.Lease) order.Result {
			return t.Process(ctx, r, l)
		},
		Count: func(m sqs.Meter, r order.Result, _ time.Duration) {
			if r.Reason == order.ReasonSettled || r.Reason == refund.ReasonRefused {
				m.Count(MetricRefunds, "Reason", string(r.Reason))
			}
		},
	}, nil
}

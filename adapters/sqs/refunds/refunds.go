// Package refunds reads refunds from messages, and makes tasks of them. It decides
// nothing about a refund.
package refunds

import (
	"context"
	"log/slog"
	"time"

	"orderonce/adapters/internal/strictjson"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/internal/validate"
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

// Decoder decodes and validates refunds in JSON. It is safe for concurrent use, and
// expensive to create, so share one.
type Decoder struct {
	json     strictjson.Decoder[message]
	validate validate.Validator
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return &Decoder{strictjson.New[message](), validate.New()} }

// Decode decodes a refund, which EventBridge or SNS may have wrapped. It returns an
// error of Parse.
func (d *Decoder) Decode(body string) (refund.Request, error) {
	raw, err := sqs.Unwrap(body)
	if err != nil {
		return refund.Request{}, err
	}
	return d.Parse(raw)
}

var errType = &strictjson.Error{Problem: `type: want "refund"; send orders to the order queue`}

// Parse decodes a refund that is not wrapped. It returns a body error, which says what
// is wrong with the JSON, or an *order.InvalidError. Both name fields, and contain no
// more of the body than order.Quote allows.
func (d *Decoder) Parse(raw []byte) (refund.Request, error) {
	m, err := d.json.Decode(raw)
	if m.Type != Type { // an order, for example, whose fields are unknown
		if fields, e := strictjson.Members(raw); e == nil && strictjson.Text(fields["type"]) != Type {
			return refund.Request{}, errType
		}
	}
	if err != nil {
		return refund.Request{}, err
	}
	draft := refund.Draft{OrderID: m.OrderID, RefundID: m.RefundID, Amount: -1, Reason: m.Reason}
	if m.Amount != nil {
		draft.Amount = *m.Amount
	}
	if m.Currency != nil {
		draft.Currency = *m.Currency
	}
	r, err := refund.New(draft)
	if err = d.validate.Message("refund", m, err); err != nil {
		return refund.Request{}, err
	}
	return r, nil
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
	return t.Of(r), nil
}

// Of returns the task of a refund, which leaves its order as it is when it is parked.
func (t Tasks) Of(r refund.Request) sqs.Task {
	return sqs.Task{
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
	}
}

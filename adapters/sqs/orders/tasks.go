package orders

import (
	"context"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// The metrics of orders; docs/reference/metrics.md explains them.
const (
	MetricSettled  = "Settled"  // by Status
	MetricOrderAge = "OrderAge" // from sent to settled
)

// Tasks turns orders into tasks. All fields are required.
type Tasks struct {
	Decoder *Decoder
	// Process settles an order. sent is when the message was first sent.
	Process func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result
	// NoteParked records that an order's message was moved to the dead-letter queue.
	NoteParked func(ctx context.Context, o order.Order, why order.Reason, at time.Time) error
}

// Task implements sqs.Handler.Decode for a queue of orders alone.
func (t Tasks) Task(body string) (sqs.Task, error) {
	o, err := t.Decoder.Decode(body)
	if err != nil {
		return sqs.Task{}, err
	}
	return sqs.Task{
		ID: o.ID(),
		Run: func(ctx context.Context, d sqs.Delivery, l order.Lease) order.Result {
			return t.Process(ctx, o, d.FirstSent, l)
		},
		NoteParked: func(ctx context.Context, why order.Reason, at time.Time) error {
			return t.NoteParked(ctx, o, why, at)
		},
		Count: func(m sqs.Meter, r order.Result, age time.Duration) {
			if r.Reason == order.ReasonSettled {
				m.Count(MetricSettled, "Status", string(r.Status))
				m.Observe(MetricOrderAge, "", "", age)
			}
		},
	}, nil
}

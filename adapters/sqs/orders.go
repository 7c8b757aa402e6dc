package sqs

import (
	"context"
	"log/slog"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Orders turns the messages of the order queue into tasks: an order is charged, a refund
// is made. All fields are required.
type Orders struct {
	// Decode returns the job in a message body, see Decoder.DecodeJob.
	Decode func(body string) (Job, error)
	// Process settles an order. sent is when the message was first sent.
	Process func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result
	// Refund makes a refund of an order.
	Refund func(ctx context.Context, r refund.Request, l order.Lease) order.Result
	// NoteParked records that an order's message was moved to the dead-letter queue.
	NoteParked func(ctx context.Context, o order.Order, why order.Reason, at time.Time) error
}

// Task implements Handler.Decode.
func (o *Orders) Task(body string) (Task, error) {
	job, err := o.Decode(body)
	switch {
	case err != nil:
		return Task{}, err
	case job.IsRefund():
		return o.refund(job.Refund), nil
	}
	return o.order(job.Order), nil
}

func (o *Orders) order(ordered order.Order) Task {
	return Task{
		ID: ordered.ID(),
		Run: func(ctx context.Context, d Delivery, l order.Lease) order.Result {
			return o.Process(ctx, ordered, d.FirstSent, l)
		},
		NoteParked: func(ctx context.Context, why order.Reason, at time.Time) error {
			return o.NoteParked(ctx, ordered, why, at)
		},
		Count: func(m Meter, r order.Result, age time.Duration) {
			if r.Reason == order.ReasonSettled {
				m.Count(MetricSettled, "Status", string(r.Status))
				m.Observe(MetricOrderAge, "", "", age)
			}
		},
	}
}

// refund returns a task that leaves its order as it is when it is parked.
func (o *Orders) refund(r refund.Request) Task {
	return Task{
		ID:    r.OrderID(),
		Attrs: []slog.Attr{slog.String("refund_id", string(r.ID()))},
		Run: func(ctx context.Context, _ Delivery, l order.Lease) order.Result {
			return o.Refund(ctx, r, l)
		},
		Count: func(m Meter, r order.Result, _ time.Duration) {
			if r.Reason == order.ReasonSettled || r.Reason == refund.ReasonRefused {
				m.Count(MetricRefunds, "Reason", string(r.Reason))
			}
		},
	}
}

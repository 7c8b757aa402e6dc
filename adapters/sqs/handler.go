package sqs

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Meter records metrics. dimension and value split a metric; both are "" for a metric
// that is not split.
type Meter interface {
	Count(metric, dimension, value string)
	Observe(metric, dimension, value string, d time.Duration)
	Flush()
}

// Handler handles batches of messages from an order queue. All fields but Settings are
// required.
type Handler struct {
	// Decode returns the job in a message body. An error means that the body can never
	// become one, so the message is parked as order.ReasonInvalid. Decode must be safe for
	// concurrent use.
	Decode func(body string) (Job, error)
	// Process settles an order. sent is when the message was first sent.
	Process func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result
	// Refund makes a refund of an order.
	Refund func(ctx context.Context, r refund.Request, l order.Lease) order.Result
	// NoteParked records that an order's message was moved to the dead-letter queue. An
	// error is logged and changes nothing: the message has its reason.
	NoteParked func(ctx context.Context, o order.Order, why order.Reason, at time.Time) error
	Queue      *Queue
	Policy     Policy
	Log        *slog.Logger
	Meter      Meter
	// Settings compares the queues' settings with Policy. If it is nil, nothing is
	// compared.
	Settings *SettingsCheck

	Now       func() time.Time
	NewOwner  func() string  // 128 random bits, new for each call
	Jitter    func() float64 // in [0, 1)
	RequestID func(context.Context) string

	Parallel    int           // how many lanes of a batch run at once
	OrderBudget time.Duration // no order starts with less time left
	AnswerTime  time.Duration // reserved at the end to change visibilities and to respond
}

// Handle processes one batch. It never returns an error, because Lambda would then
// redeliver the whole batch, settled orders included. The list of failures is never nil
// and holds only ids of this batch: otherwise Lambda deletes or redelivers the whole
// batch (Lambda developer guide, "Implementing partial batch responses").
func (h *Handler) Handle(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	defer h.Meter.Flush()
	h.Settings.start(ctx, h)
	b := h.newBatch(ctx, e)
	processing, cancel := context.WithDeadline(ctx, b.processUntil)
	defer cancel()
	b.runLanes(processing)
	return b.response(ctx), nil
}

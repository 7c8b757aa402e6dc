// Package sqs connects a queue to what its messages ask for. It decodes each message of a
// batch, runs its task, and acknowledges, redelivers or parks the message. It makes no
// decision about an order, and does not depend on Stripe or DynamoDB.
//
// Handler is the entry point. batch.go runs the messages of a batch in lanes, record.go
// takes one message through its steps, and Decide is what happens to it after its result.
// The packages below read and validate messages, and make tasks of them.
package sqs

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/domain/order"
)

// Meter records metrics by name. dimension and value split one; both are "" for one
// that is not split.
type Meter interface {
	Count(name, dimension, value string)
	Observe(name, dimension, value string, d time.Duration)
	Flush()
}

// Task is what one message asks for.
type Task struct {
	// ID is the order that the task is about. On a standard queue, tasks of one ID in a
	// batch run one after the other.
	ID order.ID
	// Run does the task under a lease that ends with the invocation.
	Run func(ctx context.Context, d Delivery, l order.Lease) order.Result
	// NoteParked records that the message was moved to the dead-letter queue; nil if
	// nothing is to be recorded. An error is logged and changes nothing: the message has
	// its reason.
	NoteParked func(ctx context.Context, why order.Reason, at time.Time) error
	// Count counts a result beside the handler's own metrics; nil if there is nothing to
	// count. age is the time since the message was sent.
	Count func(m Meter, r order.Result, age time.Duration)
	// Attrs are further attributes of the log line.
	Attrs []slog.Attr
}

// Handler handles batches of messages from a queue. It does not know what the messages
// ask for. All fields but Settings are required.
type Handler struct {
	// Decode returns the task in a message body. An error means that the body can never
	// become one, so the message is parked as order.ReasonInvalid. Decode must be safe for
	// concurrent use.
	Decode func(body string) (Task, error)
	Queue  *Queue
	Policy Policy
	Name   string // of a task in the log, such as "order"
	Log    *slog.Logger
	Meter  Meter
	// Settings compares the queues' settings with Policy. If it is nil, nothing is
	// compared.
	Settings *SettingsCheck

	Now       func() time.Time
	NewOwner  func() string  // 128 random bits, new for each call
	Jitter    func() float64 // in [0, 1)
	RequestID func(context.Context) string

	Parallel    int           // how many lanes of a batch run at once
	OrderBudget time.Duration // no task starts with less time left
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

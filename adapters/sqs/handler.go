package sqs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/domain/order"
)

// Meter counts. dimension and value split a metric, or are both "".
type Meter interface {
	Count(metric, dimension, value string)
	Observe(metric, dimension, value string, d time.Duration)
	Flush()
}

// Handler answers batches of an order queue. All fields are needed.
type Handler struct {
	Process func(context.Context, order.Order, order.Lease) order.Result
	Decoder *Decoder
	Queue   *Queue
	Policy  Policy
	Log     *slog.Logger
	Meter   Meter

	Now       func() time.Time
	NewOwner  func() string  // 128 random bits, new for each call
	Luck      func() float64 // in [0, 1)
	RequestID func(context.Context) string

	Parallel    int           // how many orders of a batch are worked on at once
	OrderBudget time.Duration // nothing new starts with less time left
	AnswerTime  time.Duration // kept back from the orders to answer the queue
}

// Handle works through one batch. It never returns an error: that would bring back the whole batch, also what is
// settled. The list of failures is never nil, and holds only ids of this batch; anything else makes Lambda
// delete or repeat the whole batch (Lambda developer guide, "Implementing partial batch responses").
func (h *Handler) Handle(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	defer h.Meter.Flush()
	b := h.newBatch(ctx, e)
	work, cancel := context.WithDeadline(ctx, b.workUntil)
	defer cancel()
	b.run(work)
	return b.answer(ctx), nil
}

// batch is one invocation. Its records lie in lanes: what is in one lane is done one after the other.
type batch struct {
	*Handler
	requestID string
	lease     time.Time // the end of every lease
	workUntil time.Time
	lanes     [][]*record
	records   []*record
}

// record is one message on its way through the batch.
type record struct {
	events.SQSMessage
	delivery Delivery
	order    order.Order
	result   order.Result
	action   Action
	failed   error // of decoding
}

func (h *Handler) newBatch(ctx context.Context, e events.SQSEvent) *batch {
	now := h.Now()
	b := &batch{Handler: h, requestID: h.RequestID(ctx), lease: leaseEnd(ctx, now)}
	b.workUntil = b.lease.Add(-h.AnswerTime)
	lane := map[string]int{}
	for _, m := range e.Records {
		r := &record{SQSMessage: m, delivery: deliveryOf(m, now)}
		r.order, r.failed = h.Decoder.Decode(m.Body)
		b.records = append(b.records, r)
		i, known := lane[r.lane()]
		if !known {
			i = len(b.lanes)
			lane[r.lane()] = i
			b.lanes = append(b.lanes, nil)
		}
		b.lanes[i] = append(b.lanes[i], r)
	}
	return b
}

// lane keeps a FIFO group in order, and two messages of one order out of each other's way.
func (r *record) lane() string {
	switch {
	case r.delivery.FIFO:
		return "group " + r.delivery.Group
	case r.failed != nil:
		return "message " + r.MessageId
	}
	return "order " + string(r.order.ID())
}

// minLease keeps a lease from being over before its order is begun.
const minLease = time.Second

// leaseEnd is when this invocation's workers are surely dead: at the function's deadline.
func leaseEnd(ctx context.Context, now time.Time) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		end = now.Add(order.MaxLease)
	}
	return now.Add(min(max(end.Sub(now), minLease), order.MaxLease))
}

func (b *batch) run(ctx context.Context) {
	var wg sync.WaitGroup
	free := make(chan struct{}, b.Parallel)
	for _, lane := range b.lanes {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			b.walk(ctx, lane)
		})
	}
	wg.Wait()
}

// walk does one lane. In a FIFO group what follows a message that has to come back comes back behind it.
func (b *batch) walk(ctx context.Context, lane []*record) {
	var head *record
	for _, r := range lane {
		if head != nil {
			r.result = order.Result{Verdict: order.Redeliver, Reason: ReasonBehind, Patient: true}
			r.action = head.action
		} else {
			b.do(ctx, r)
		}
		if r.delivery.FIFO && r.action.Verdict == order.Redeliver && head == nil {
			head = r
		}
		b.report(ctx, r)
	}
}

func (b *batch) do(ctx context.Context, r *record) {
	if b.workUntil.Sub(b.Now()) < b.OrderBudget {
		// It waits for nothing but a free worker, so it is visible again at once.
		r.result = order.Result{Verdict: order.Redeliver, Reason: ReasonNotStarted, Patient: true}
		r.action = Action{Verdict: order.Redeliver}
		return
	}
	r.result = b.process(ctx, r)
	r.action = Answer(r.result, r.delivery, b.Now(), b.Luck(), b.Policy)
	if r.action.Verdict != order.Park {
		return
	}
	if err := b.Queue.Park(ctx, r.parked()); err != nil {
		r.result = order.Result{Verdict: order.Redeliver, Reason: ReasonParkFailed, Patient: true, Err: err}
		r.action = Action{Verdict: order.Redeliver, Delay: b.Policy.backOff(r.delivery.Count, b.Luck())}
	}
}

// process is where a panic stops: the other records of the batch are other people's orders.
func (b *batch) process(ctx context.Context, r *record) (result order.Result) {
	defer func() {
		if p := recover(); p != nil {
			// The value may hold anything, so only its type and where it was thrown are told.
			result = order.Result{Verdict: order.Redeliver, Reason: ReasonPanic, Err: fmt.Errorf("panic of type %T at %s", p, debug.Stack())}
		}
	}()
	if r.failed != nil {
		return order.Result{Verdict: order.Park, Reason: order.ReasonInvalid, Err: r.failed}
	}
	return b.Process(ctx, r.order, order.Lease{Owner: b.NewOwner(), From: b.Now(), Until: b.lease})
}

func (r *record) parked() Parked {
	p := Parked{
		Message: r.SQSMessage, SentAt: r.delivery.SentAt, Group: r.delivery.Group, FIFO: r.delivery.FIFO,
		OrderID: r.order.ID(), Reason: r.result.Reason,
	}
	if r.result.Err != nil {
		p.Detail = r.result.Err.Error()
	}
	return p
}

// answer returns what has to come back to the queue, and names it to Lambda.
func (b *batch) answer(ctx context.Context) events.SQSEventResponse {
	failures := []events.SQSBatchItemFailure{}
	var delays []Delay
	for _, r := range b.records {
		if r.action.Verdict != order.Redeliver {
			continue
		}
		failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
		delays = append(delays, Delay{r.MessageId, r.ReceiptHandle, r.action.Delay})
	}
	if err := b.Queue.Return(ctx, delays); err != nil {
		b.Log.LogAttrs(ctx, slog.LevelWarn, "the queue's own visibility timeout decides when messages come back",
			slog.String("request_id", b.requestID), slog.Any("error", err))
	}
	return events.SQSEventResponse{BatchItemFailures: failures}
}

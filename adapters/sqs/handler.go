package sqs

import (
	"context"
	"errors"
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

// Handler answers batches of an order queue. All fields but Settings are needed.
type Handler struct {
	Process func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result
	Decoder *Decoder
	Queue   *Queue
	Policy  Policy
	Log     *slog.Logger
	Meter   Meter
	// Settings compares the queues' settings with Policy. It may be nil: then nothing is compared.
	Settings *SettingsCheck

	Now       func() time.Time
	NewOwner  func() string  // 128 random bits, new for each call
	Jitter    func() float64 // in [0, 1)
	RequestID func(context.Context) string

	Parallel    int           // how many orders of a batch are worked on at once
	OrderBudget time.Duration // nothing new starts with less time left
	AnswerTime  time.Duration // kept back from the orders to answer the queue
}

// Handle works through one batch. It never returns an error: that would bring back the whole batch, including what is
// already settled. The list of failures is never nil, and holds only ids of this batch; anything else makes Lambda
// delete or repeat the whole batch (Lambda developer guide, "Implementing partial batch responses").
func (h *Handler) Handle(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	defer h.Meter.Flush()
	h.Settings.start(ctx, h)
	b := h.newBatch(ctx, e)
	working, cancel := context.WithDeadline(ctx, b.workUntil)
	defer cancel()
	b.run(working)
	return b.answer(ctx), nil
}

// batch is one invocation. Its records lie in lanes: what is in one lane is done one after the other.
type batch struct {
	*Handler
	requestID  string
	began      time.Time
	leaseUntil time.Time // the end of every lease
	workUntil  time.Time
	hopeless   error // why no order can start, in this batch or a later one; nil if one can
	lanes      [][]*record
	records    []*record
}

// record is one message on its way through the batch.
type record struct {
	events.SQSMessage
	delivery Delivery
	order    order.Order
	result   order.Result // set already by decode if the body is no order
	action   Action
}

func (h *Handler) newBatch(ctx context.Context, e events.SQSEvent) *batch {
	now := h.Now()
	b := &batch{Handler: h, requestID: h.RequestID(ctx), began: now, leaseUntil: leaseEnd(ctx, now)}
	b.workUntil = b.leaseUntil.Add(-h.AnswerTime)
	if left := b.workUntil.Sub(now); left < h.OrderBudget {
		b.hopeless = fmt.Errorf("a whole batch has %v for its orders, and one order needs %v: the function's time-out is too short",
			left, h.OrderBudget)
	}
	lane := map[string]int{}
	for _, m := range e.Records {
		r := &record{SQSMessage: m, delivery: deliveryOf(m, now)}
		b.decode(r)
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

// decode reads a record's order. A record without one has its result already.
func (b *batch) decode(r *record) {
	if err := recovered(func() {
		var err error
		if r.order, err = b.Decoder.Decode(r.Body); err != nil {
			r.result = order.Result{Verdict: order.Park, Reason: order.ReasonInvalid, Err: err}
		}
	}); err != nil {
		r.result = panicked(err)
	}
}

func (r *record) decoded() bool { return r.result.Reason == "" }

// lane keeps a FIFO group in order, and two messages of one order out of each other's way.
func (r *record) lane() string {
	switch {
	case r.delivery.FIFO:
		return "group " + r.delivery.Group
	case !r.decoded():
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
			r.result = order.Result{Verdict: order.Redeliver, Reason: ReasonBehind, Transient: true}
			r.action = head.action
		} else {
			b.do(ctx, r)
			if r.delivery.FIFO && r.action.Verdict == order.Redeliver {
				head = r
			}
		}
		b.tell(ctx, r)
	}
}

// do sets the action of one record, whatever panics or exits on the way. It calls none of the
// handler's functions itself: the clock may be what panics.
func (b *batch) do(ctx context.Context, r *record) {
	if err := recovered(func() { b.decide(ctx, r) }); err != nil {
		r.result, r.action = panicked(err), b.Policy.unparked(r.delivery, b.began, 1)
	}
}

// decide works on a record and says what becomes of its message. One that nobody can help is parked.
func (b *batch) decide(ctx context.Context, r *record) {
	r.result = b.work(ctx, r)
	r.action = Answer(r.result, r.delivery, b.Now(), b.Jitter(), b.Policy)
	if r.action.Verdict != order.Park {
		return
	}
	if err := b.Queue.Park(ctx, r.parked()); err != nil {
		r.result = order.Result{Verdict: order.Redeliver, Reason: ReasonParkFailed, Transient: true, Err: err}
		r.action = b.Policy.unparked(r.delivery, b.Now(), b.Jitter())
	}
}

// work is what a record's order comes to.
func (b *batch) work(ctx context.Context, r *record) (result order.Result) {
	switch {
	case b.hopeless != nil:
		return order.Result{Verdict: order.Redeliver, Reason: order.ReasonMisconfigured, Transient: true, Err: b.hopeless}
	case b.workUntil.Sub(b.Now()) < b.OrderBudget:
		return order.Result{Verdict: order.Redeliver, Reason: ReasonNotStarted, Transient: true}
	case !r.decoded():
		return r.result
	}
	if err := recovered(func() {
		lease := order.Lease{Owner: b.NewOwner(), From: b.Now(), Until: b.leaseUntil}
		result = b.Process(ctx, r.order, r.delivery.FirstSent, lease)
	}); err != nil {
		return panicked(err)
	}
	return result
}

// tell reports a record that is done with. A report that panics changes nothing about the record.
func (b *batch) tell(ctx context.Context, r *record) {
	err := recovered(func() { b.report(ctx, r) })
	if err == nil {
		return
	}
	_ = recovered(func() { // if the logger itself panics, nothing is left to log with
		b.Log.LogAttrs(ctx, slog.LevelError, "the line of a message is lost",
			slog.String("message_id", r.MessageId), slog.String("request_id", b.requestID), slog.Any("error", err))
	})
}

// errExited is the error of a worker that ended its goroutine with runtime.Goexit.
var errExited = errors.New("worker goroutine exited without a result")

// recovered calls f and returns an error if f panics or exits its goroutine. The other records of
// the batch are other people's orders, so neither may end more than f. An exit cannot be stopped,
// so f has a goroutine of its own.
func recovered(f func()) error {
	result := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			if p := recover(); p != nil {
				// The value may hold anything, so only its type and the stack are logged.
				err = fmt.Errorf("panic of type %T at %s", p, debug.Stack())
			}
			result <- err
		}()
		f()
		err = nil
	}()
	return <-result
}

func panicked(err error) order.Result {
	return order.Result{Verdict: order.Redeliver, Reason: ReasonPanic, Err: err}
}

func (r *record) parked() Parked {
	p := Parked{
		Message: r.SQSMessage, FirstSent: r.delivery.FirstSent, Group: r.delivery.Group, FIFO: r.delivery.FIFO,
		OrderID: r.order.ID(), Reason: r.result.Reason,
	}
	if r.result.Err != nil {
		p.Detail = r.result.Err.Error()
	}
	return p
}

// answerReserve is the part of AnswerTime in which the queue is not asked for anything any more.
const answerReserve = 4

// answer returns what has to come back to the queue, and names it to Lambda. A queue that is slow to hear of the delays must not use
// up the function's time: it would be killed, and the whole batch would come back, including what is already settled.
func (b *batch) answer(ctx context.Context) events.SQSEventResponse {
	ctx, cancel := context.WithDeadline(ctx, b.leaseUntil.Add(-b.AnswerTime/answerReserve))
	defer cancel()
	failures := []events.SQSBatchItemFailure{}
	var delays []Delay
	for _, r := range b.records {
		if r.action.Verdict == order.Done || r.action.Verdict == order.Park {
			continue // whatever else became of a record, its message must come back
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

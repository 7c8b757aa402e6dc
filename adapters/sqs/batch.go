package sqs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/domain/order"
)

// batch is one invocation. Its lanes run in parallel: a FIFO group, or on a standard
// queue each message, so that no order waits until the body of another is decoded.
type batch struct {
	*Handler
	requestID    string
	began        time.Time
	leaseUntil   time.Time // the end of every lease
	processUntil time.Time // the rest of the time is for the response
	tooShort     error     // why no order can start; nil if the function timeout is long enough
	records      []*record // in the order of the event
	lanes        [][]*record

	mu      sync.Mutex
	running map[string][]*record // by order: the record that runs, and those that wait for it
}

func (h *Handler) newBatch(ctx context.Context, e events.SQSEvent) *batch {
	now := h.Now()
	b := &batch{Handler: h, requestID: h.RequestID(ctx), began: now, leaseUntil: leaseEnd(ctx, now)}
	b.processUntil = b.leaseUntil.Add(-h.AnswerTime)
	if left := b.processUntil.Sub(now); left < h.OrderBudget {
		b.tooShort = fmt.Errorf("function timeout too short: %v left for orders, ORDER_BUDGET is %v",
			left, h.OrderBudget)
	}
	b.running = map[string][]*record{}
	lane := map[string]int{}
	for _, m := range e.Records {
		r := &record{SQSMessage: m, delivery: deliveryOf(m, now)}
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

// leaseEnd returns the function's deadline: after it Lambda has killed every worker of
// this invocation. No lease ends before its order is begun.
func leaseEnd(ctx context.Context, now time.Time) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		end = now.Add(order.MaxLease)
	}
	return now.Add(min(max(end.Sub(now), time.Second), order.MaxLease))
}

// runLanes runs all lanes, at most Parallel at once, and returns when the last one ends.
func (b *batch) runLanes(ctx context.Context) {
	var wg sync.WaitGroup
	free := make(chan struct{}, b.Parallel)
	for _, lane := range b.lanes {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			b.runLane(ctx, lane)
		})
	}
	wg.Wait()
}

// runLane handles the records of one lane. On a standard queue it then handles those of
// the same order that other lanes have left to it.
func (b *batch) runLane(ctx context.Context, lane []*record) {
	if lane[0].delivery.FIFO {
		b.runGroup(ctx, lane)
		return
	}
	for _, r := range lane {
		b.decode(r)
		for next := b.enter(r); next != nil; next = b.leave(next) {
			b.handle(ctx, next)
			b.report(ctx, next)
		}
	}
}

// runGroup handles the records of a FIFO group. Everything after a record that is
// redelivered is redelivered with the same delay, so that the group keeps its order.
func (b *batch) runGroup(ctx context.Context, group []*record) {
	var head *record
	for _, r := range group {
		b.decode(r) // also one that waits, for the log
		if head != nil {
			r.result = order.Result{Verdict: order.Redeliver, Reason: ReasonBehind, Transient: true}
			r.action = head.action
		} else {
			b.handle(ctx, r)
			if r.action.Verdict == order.Redeliver {
				head = r
			}
		}
		b.report(ctx, r)
	}
}

// enter returns the record if no other of its order runs, or else nil: the record waits.
func (b *batch) enter(r *record) *record {
	b.mu.Lock()
	defer b.mu.Unlock()
	lane := r.lane()
	b.running[lane] = append(b.running[lane], r)
	if len(b.running[lane]) > 1 {
		return nil
	}
	return r
}

// leave returns the next record that waits for one that is done, or nil.
func (b *batch) leave(r *record) *record {
	b.mu.Lock()
	defer b.mu.Unlock()
	lane := r.lane()
	b.running[lane] = b.running[lane][1:]
	if len(b.running[lane]) == 0 {
		return nil
	}
	return b.running[lane][0]
}

// response returns the batch item failures, after it has changed the visibility of their
// messages. Its calls to SQS end a quarter of AnswerTime before the function's deadline:
// otherwise Lambda would kill the function and redeliver the whole batch, settled orders
// included.
func (b *batch) response(ctx context.Context) events.SQSEventResponse {
	ctx, cancel := context.WithDeadline(ctx, b.leaseUntil.Add(-b.AnswerTime/4))
	defer cancel()
	failures := []events.SQSBatchItemFailure{}
	var delays []Delay
	for _, r := range b.records {
		if r.action.Verdict == order.Done || r.action.Verdict == order.Park {
			continue
		}
		failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
		delays = append(delays, Delay{r.MessageId, r.ReceiptHandle, r.action.Delay})
	}
	if err := b.Queue.ChangeVisibility(ctx, delays); err != nil {
		b.Log.LogAttrs(ctx, slog.LevelWarn, "visibility not changed: the queue's visibility timeout applies",
			slog.String("request_id", b.requestID), slog.Any("error", err))
	}
	return events.SQSEventResponse{BatchItemFailures: failures}
}

package sqs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/domain/order"
)

// record is one message of a batch. Its steps are decode, process, resolve and report.
type record struct {
	events.SQSMessage
	delivery Delivery
	task     Task
	result   order.Result // set by decode if the body is not a task
	action   Action
}

// decode reads the task of a record, once. If that fails it sets the result, and process
// does nothing.
func (b *batch) decode(r *record) {
	if r.task.Run != nil || r.result.Reason != "" {
		return
	}
	if err := recoverPanic(func() {
		var err error
		if r.task, err = b.Decode(r.Body); err != nil {
			r.result = order.Result{Verdict: order.Park, Reason: order.ReasonInvalid, Err: err}
		}
	}); err != nil {
		r.result = panicked(err)
	}
}

// lane returns a key that is the same for records that must not run in parallel: those of
// one FIFO group, and on a standard queue those of one order, its refunds included. A
// record has no order before it is decoded.
func (r *record) lane() string {
	if r.delivery.FIFO {
		return "group " + r.delivery.Group
	}
	if r.task.ID == "" {
		return "message " + r.MessageId
	}
	return "order " + string(r.task.ID)
}

// handle processes a record and sets its result and action, even if a step panics. After
// a panic handle calls none of the handler's functions, because the clock may be what
// panics.
func (b *batch) handle(ctx context.Context, r *record) {
	if err := recoverPanic(func() {
		r.result = b.process(ctx, r)
		b.resolve(ctx, r)
	}); err != nil {
		r.result, r.action = panicked(err), b.Policy.unparked(r.delivery, b.began, 1)
	}
}

func (b *batch) process(ctx context.Context, r *record) (result order.Result) {
	left := b.processUntil.Sub(b.Now())
	switch {
	case r.result.Reason != "" && left > 0: // it needs no time but for a call to the queue
		return r.result
	case b.tooShort != nil:
		return order.Result{
			Verdict: order.Redeliver, Reason: order.ReasonMisconfigured, Transient: true, Err: b.tooShort,
		}
	case left < b.OrderBudget:
		return order.Result{Verdict: order.Redeliver, Reason: ReasonNotStarted, Transient: true}
	}
	if err := recoverPanic(func() {
		l := order.Lease{Owner: b.NewOwner(), From: b.Now(), Until: b.leaseUntil, Trace: r.delivery.Trace}
		result = r.task.Run(ctx, r.delivery, l)
	}); err != nil {
		return panicked(err)
	}
	return result
}

// resolve decides what happens to the message, and sends it to the dead-letter queue if
// it is parked.
func (b *batch) resolve(ctx context.Context, r *record) {
	r.action = Decide(r.result, r.delivery, b.Now(), b.Jitter(), b.Policy)
	if r.action.Verdict != order.Park {
		return
	}
	if err := b.Queue.park(ctx, r); err != nil {
		r.result = order.Result{Verdict: order.Redeliver, Reason: ReasonParkFailed, Transient: true, Err: err}
		r.action = b.Policy.unparked(r.delivery, b.Now(), b.Jitter())
		return
	}
	b.noteParked(ctx, r)
}

// noteParked records that the message was parked. It is in the dead-letter queue by now,
// so neither an error nor a panic may redeliver it.
func (b *batch) noteParked(ctx context.Context, r *record) {
	if r.task.NoteParked == nil {
		return
	}
	var err error
	if p := recoverPanic(func() { err = r.task.NoteParked(ctx, r.result.Reason, b.Now()) }); p != nil {
		err = p
	}
	b.logFailure(ctx, slog.LevelWarn, "message parked, but its record does not say so", r, err)
}

// report writes the log line and the metrics of a record. If that panics, the record
// keeps its action.
func (b *batch) report(ctx context.Context, r *record) {
	err := recoverPanic(func() {
		b.count(r)
		b.logRecord(ctx, r)
	})
	b.logFailure(ctx, slog.LevelError, "message not reported: panic while counting or logging", r, err)
}

// logFailure logs an error that does not change what happens to the message.
func (b *batch) logFailure(ctx context.Context, level slog.Level, text string, r *record, err error) {
	if err == nil {
		return
	}
	_ = recoverPanic(func() { // the logger may be what panicked
		b.Log.LogAttrs(ctx, level, text, //nolint:sloglint // the callers' constants
			slog.String("message_id", r.MessageId), slog.String("request_id", b.requestID), slog.Any("error", err))
	})
}

// recoverPanic calls f and returns an error if f panics or exits its goroutine: neither
// may fail the other records of the batch. recover does not see an exit, so f has a
// goroutine of its own.
func recoverPanic(f func()) error {
	result := make(chan error, 1)
	go func() {
		err := errors.New("worker goroutine exited without a result")
		defer func() {
			if p := recover(); p != nil {
				// The panic's value may hold personal data, so only its type and the
				// stack are logged.
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

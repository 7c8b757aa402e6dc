package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"orderonce/adapters/dynamodb/stream"
	"orderonce/adapters/lambda"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// answerTime is kept of the function's time to log and to answer. Without an answer,
// Lambda repeats the whole batch and not only the rest of it.
const answerTime = time.Second

// The reasons for which an event item is not published, as values of the metric
// Unpublished. Lambda repeats the batch from the first item that is not published, except
// for an unreadable one.
const (
	refused     = "refused"     // the bus answered and did not accept the event
	unavailable = "unavailable" // the bus did not answer, or the time was over
	unreadable  = "unreadable"  // no retry can publish the item: it is skipped
)

// run handles one batch of the stream.
type run struct {
	publisher outbox.Publisher
	log       *slog.Logger
	meter     *lambda.Meter
}

// publish publishes event items in order, up to the first failure. It returns how many
// from the start are published or skipped.
func (r *run) publish(ctx context.Context, records []stream.Record) (done int) {
	defer r.meter.Flush()
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerTime))
		defer cancel()
	}
	events, index := readable(records)
	n, err := r.publisher.Publish(ctx, events)
	if done = len(records); n < len(events) {
		done = index[n]
	}
	r.report(ctx, records[:done], records[done:], err)
	return done
}

// readable returns the readable events of records, and their indexes.
func readable(records []stream.Record) (events []outbox.Event, index []int) {
	for i, record := range records {
		if record.Err == nil {
			events, index = append(events, record.Event), append(index, i)
		}
	}
	return events, index
}

// report logs and counts what was done, and what is left because of err.
func (r *run) report(ctx context.Context, done, left []stream.Record, err error) {
	published := 0
	for _, record := range done {
		if record.Err == nil {
			published++
			r.reportPublished(ctx, record)
			continue
		}
		r.meter.Count("Unpublished", "Reason", unreadable)
		r.log.LogAttrs(ctx, slog.LevelError, "unreadable event item skipped",
			append(describe(record), slog.String("error", record.Err.Error()))...)
	}
	if published > 0 {
		r.meter.Add("Published", "", "", published)
	}
	attrs := []slog.Attr{slog.Int("published", published), slog.Int("left", len(left))}
	level := slog.LevelInfo
	if len(left) > 0 {
		r.meter.Add("Unpublished", "Reason", reasonOf(err), len(left))
		level, attrs = slog.LevelWarn, append(attrs, slog.String("reason", reasonOf(err)), slog.Any("error", err))
		attrs = append(attrs, describe(left[0])...)
	}
	r.log.LogAttrs(ctx, level, "batch published", attrs...)
}

// reportPublished logs an event, and counts it if others gave money back. It counts here
// and not where a refresh records them, because the event is never lost.
func (r *run) reportPublished(ctx context.Context, record stream.Record) {
	r.log.LogAttrs(ctx, slog.LevelInfo, "event published",
		append(describe(record), slog.String("type", record.Event.Type()))...)
	refund := record.Event.Event.Refund
	if refund.Status == order.RefundedOutside && refund.Amount > 0 { // less than 0: the bank returned it
		r.meter.Count("RefundedOutside", "", "")
	}
}

func reasonOf(err error) string {
	if errors.Is(err, outbox.ErrRefused) {
		return refused
	}
	return unavailable
}

func describe(record stream.Record) []slog.Attr {
	return []slog.Attr{
		slog.String("order_id", string(record.Event.OrderID)), slog.String("sort_key", record.SortKey),
		slog.String("trace_id", record.Event.Trace.ID()),
	}
}

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"

	"orderonce/adapters/lambda"
	"orderonce/domain/order"
	"orderonce/domain/settle"
)

// run handles one event of the schedule.
type run struct {
	reconcile func(ctx context.Context, until time.Time) (settle.Reconciled, error) // settle.Reconciler.Run
	margin    time.Duration                                                         // kept for the last orders
	log       *slog.Logger
	meter     *lambda.Meter
	now       func() time.Time
}

// handle rechecks due orders until none is left or the function's time is over. The
// event's content does not matter. It returns the error of reconcile; the next event
// tries again.
func (r *run) handle(ctx context.Context, _ json.RawMessage) (struct{}, error) {
	defer r.meter.Flush()
	until := r.now().Add(r.margin)
	if deadline, ok := ctx.Deadline(); ok {
		until = deadline.Add(-r.margin)
	}
	done, err := r.reconcile(ctx, until)
	r.report(ctx, done, err)
	return struct{}{}, err
}

func (r *run) report(ctx context.Context, done settle.Reconciled, err error) {
	counts := map[string]int{
		"failed": len(done.Failed), "unavailable": len(done.Unavailable), "mismatch": len(done.Mismatched),
	}
	for followed, n := range done.Followed {
		counts[string(followed)] = n
	}
	var logged []slog.Attr
	for _, result := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[result]; n > 0 {
			r.meter.Add("Reconciled", "Result", result, n)
			logged = append(logged, slog.Int(result, n))
		}
	}
	for status, age := range done.Oldest {
		r.meter.Observe("OldestWaiting", "Status", string(status), age)
	}
	if done.Overdue > 0 {
		r.meter.Observe("Overdue", "", "", done.Overdue)
	}
	r.reportOrders(ctx, done)
	level := slog.LevelInfo
	if err != nil || len(done.Failed)+len(done.Unavailable) > 0 {
		level = slog.LevelError
	}
	r.log.LogAttrs(ctx, level, "reconciled", slog.Any("results", slog.GroupValue(logged...)),
		slog.Bool("more", done.More), slog.Any("error", err))
}

// reportOrders logs each order that a person may have to look at.
func (r *run) reportOrders(ctx context.Context, done settle.Reconciled) {
	for _, o := range done.Mismatched {
		r.log.LogAttrs(ctx, slog.LevelError, "order and Stripe disagree", identify(o)...)
	}
	for _, o := range done.NoIntent {
		r.log.LogAttrs(
			ctx, slog.LevelWarn, "open order without an intent: its message must come back", identify(o)...,
		)
	}
	for _, f := range slices.Concat(done.Failed, done.Unavailable) {
		r.log.LogAttrs(ctx, slog.LevelError, "order not reconciled",
			slog.String("order_id", string(f.OrderID)), slog.Any("error", f.Err))
	}
}

func identify(r order.Record) []slog.Attr {
	return []slog.Attr{
		slog.String("order_id", string(r.OrderID)), slog.String("intent_id", string(r.Intent)),
		slog.String("trace_id", r.Trace.ID()),
	}
}

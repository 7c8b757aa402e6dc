package sqs

import (
	"cmp"
	"context"
	"log/slog"

	"orderonce/domain/order"
)

// The metrics of the order function; docs/reference/metrics.md explains them.
const (
	MetricReceived           = "Received"
	MetricDuplicates         = "Duplicates"
	MetricInProgress         = "InProgress"
	MetricTakeovers          = "Takeovers"
	MetricClaimsLost         = "ClaimsLost"
	MetricUnknown            = "Unknown"
	MetricRedelivered        = "Redelivered"        // by Reason
	MetricParked             = "Parked"             // by Reason
	MetricWaitingAge         = "WaitingAge"         // of a redelivered message, since it was first sent
	MetricQueueMisconfigured = "QueueMisconfigured" // by Setting
)

func (b *batch) logRecord(ctx context.Context, r *record) {
	attrs := []slog.Attr{
		slog.String("order_id", string(r.task.ID)),
		slog.String("message_id", r.MessageId),
		slog.Int("delivery", r.delivery.Count),
		slog.Int("attempt", r.result.Attempt),
		slog.String("status", string(r.result.Status)),
		slog.String("verdict", string(r.action.Verdict)),
		slog.String("reason", string(r.result.Reason)),
		slog.String("intent_id", string(r.result.Intent)),
		slog.String("request_id", b.requestID),
	}
	attrs = append(attrs, r.task.Attrs...)
	attrs = append(attrs, traceAttrs(r.result.Trace, r.delivery.Trace)...)
	if r.action.Verdict == order.Redeliver {
		attrs = append(attrs, slog.Int64("retry_after_s", int64(r.action.Delay.Seconds())))
	}
	if r.result.RequestID != "" {
		attrs = append(attrs, slog.String("provider_request_id", r.result.RequestID))
	}
	if r.result.Err != nil {
		attrs = append(attrs, slog.String("error", r.result.Err.Error()))
	}
	//nolint:sloglint // Name is a constant of each function
	b.Log.LogAttrs(ctx, level(r.action.Verdict, r.result), b.Name, attrs...)
}

// traceAttrs returns the trace id of the order, and that of the message if it differs: a
// duplicate has a trace of its own.
func traceAttrs(ofOrder, ofMessage order.Trace) (attrs []slog.Attr) {
	if ofOrder = cmp.Or(ofOrder, ofMessage); ofOrder != "" {
		attrs = append(attrs, slog.String("trace_id", ofOrder.ID()))
	}
	if ofMessage != "" && ofMessage.ID() != ofOrder.ID() {
		attrs = append(attrs, slog.String("message_trace_id", ofMessage.ID()))
	}
	return attrs
}

// level is ERROR for a parked message, because a person has to look at it, WARN for a
// failure, also of one that no redelivery repairs, and INFO for a message that only waits
// for others.
func level(v order.Verdict, r order.Result) slog.Level {
	switch v {
	case order.Park:
		return slog.LevelError
	case order.Redeliver:
		if r.Reason != order.ReasonInProgress && r.Reason != ReasonNotStarted && r.Reason != ReasonBehind {
			return slog.LevelWarn
		}
	case order.Done:
		if r.Err != nil {
			return slog.LevelWarn
		}
	}
	return slog.LevelInfo
}

func (b *batch) count(r *record) {
	b.Meter.Count(MetricReceived, "", "")
	switch r.action.Verdict {
	case order.Park:
		b.Meter.Count(MetricParked, "Reason", string(r.result.Reason))
	case order.Redeliver:
		b.Meter.Count(MetricRedelivered, "Reason", string(r.result.Reason))
		b.Meter.Observe(MetricWaitingAge, "", "", b.Now().Sub(r.delivery.FirstSent))
	case order.Done:
	}
	if r.result.Takeover {
		b.Meter.Count(MetricTakeovers, "", "")
	}
	if r.task.Count != nil {
		r.task.Count(b.Meter, r.result, b.Now().Sub(r.delivery.SentAt))
	}
	metric := map[order.Reason]string{
		order.ReasonDuplicate: MetricDuplicates, order.ReasonInProgress: MetricInProgress,
		order.ReasonClaimLost: MetricClaimsLost, order.ReasonUnknown: MetricUnknown,
	}[r.result.Reason]
	if metric != "" { // the other reasons are counted by their verdict or by the task
		b.Meter.Count(metric, "", "")
	}
}

package sqs

import (
	"context"
	"log/slog"

	"orderonce/domain/order"
)

// The metrics of the order function; docs/reference/metrics.md explains them.
const (
	MetricReceived           = "Received"
	MetricSettled            = "Settled" // by Status
	MetricDuplicates         = "Duplicates"
	MetricInProgress         = "InProgress"
	MetricTakeovers          = "Takeovers"
	MetricClaimsLost         = "ClaimsLost"
	MetricUnknown            = "Unknown"
	MetricRedeliver          = "Redelivered"        // by Reason
	MetricParked             = "Parked"             // by Reason
	MetricOrderAge           = "OrderAge"           // from sent to settled
	MetricWaitingAge         = "WaitingAge"         // of a message that has to come back: now less its first sending
	MetricQueueMisconfigured = "QueueMisconfigured" // by Setting
)

// report writes the one line and the counts of a record that is done with.
func (b *batch) report(ctx context.Context, r *record) {
	b.count(r)
	attrs := []slog.Attr{
		slog.String("order_id", string(r.order.ID())),
		slog.String("message_id", r.MessageId),
		slog.Int("delivery", r.delivery.Count),
		slog.Int("attempt", r.result.Attempt),
		slog.String("status", string(r.result.Status)),
		slog.String("verdict", string(r.action.Verdict)),
		slog.String("reason", string(r.result.Reason)),
		slog.String("intent_id", string(r.result.Intent)),
		slog.String("request_id", b.requestID),
	}
	if r.action.Verdict == order.Redeliver {
		attrs = append(attrs, slog.Int64("retry_after_s", int64(r.action.Delay.Seconds())))
	}
	if r.result.RequestID != "" {
		attrs = append(attrs, slog.String("provider_request_id", r.result.RequestID))
	}
	if r.result.Err != nil {
		attrs = append(attrs, slog.String("error", r.result.Err.Error()))
	}
	b.Log.LogAttrs(ctx, level(r.action.Verdict, r.result.Reason), "order", attrs...)
}

// level is how much a record deserves a person: one that is parked needs one, one that merely waits its turn does not.
func level(v order.Verdict, r order.Reason) slog.Level {
	switch v {
	case order.Park:
		return slog.LevelError
	case order.Redeliver:
		if r != order.ReasonInProgress && r != ReasonNotStarted && r != ReasonBehind {
			return slog.LevelWarn
		}
	case order.Done:
	}
	return slog.LevelInfo
}

func (b *batch) count(r *record) {
	b.Meter.Count(MetricReceived, "", "")
	switch r.action.Verdict {
	case order.Park:
		b.Meter.Count(MetricParked, "Reason", string(r.result.Reason))
	case order.Redeliver:
		b.Meter.Count(MetricRedeliver, "Reason", string(r.result.Reason))
		b.Meter.Observe(MetricWaitingAge, "", "", b.Now().Sub(r.delivery.FirstSent))
	case order.Done:
	}
	if r.result.Takeover {
		b.Meter.Count(MetricTakeovers, "", "")
	}
	switch r.result.Reason { //nolint:exhaustive // the other reasons are counted by their verdict
	case order.ReasonSettled:
		b.Meter.Count(MetricSettled, "Status", string(r.result.Status))
		b.Meter.Observe(MetricOrderAge, "", "", b.Now().Sub(r.delivery.SentAt))
	case order.ReasonDuplicate:
		b.Meter.Count(MetricDuplicates, "", "")
	case order.ReasonInProgress:
		b.Meter.Count(MetricInProgress, "", "")
	case order.ReasonClaimLost:
		b.Meter.Count(MetricClaimsLost, "", "")
	case order.ReasonUnknown:
		b.Meter.Count(MetricUnknown, "", "")
	}
}

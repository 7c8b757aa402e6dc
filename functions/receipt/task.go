package main

import (
	"context"
	"log/slog"
	"time"

	"orderonce/adapters/eventbridge"
	"orderonce/adapters/ses"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// metricReceipts counts what the function wrote, by Result: the status of a receipt.
const metricReceipts = "Receipts"

// tasks turns the events in the queue into tasks: an order event asks for a receipt, an
// event of SES reports about one.
type tasks struct {
	processor *receipt.Processor
	scope     order.Scope
}

// task implements sqs.Handler.Decode.
func (t tasks) task(body string) (sqs.Task, error) {
	if eventbridge.Source(body) == ses.Source {
		e, wanted, err := ses.DecodeEvent(body, t.scope)
		if err != nil || !wanted {
			return ignore(e.OrderID), err
		}
		return counted(e.OrderID, e.Key, func(ctx context.Context, _ order.Lease) receipt.Result {
			return t.processor.Follow(ctx, e.OrderID, e.Key, e.Report)
		}), nil
	}
	e, err := eventbridge.Decode(body, t.scope)
	if err != nil {
		return sqs.Task{}, err
	}
	request, wanted, err := receipt.FromEvent(e)
	if err != nil || !wanted {
		return ignore(e.OrderID), err
	}
	return counted(request.OrderID, request.Key, func(ctx context.Context, l order.Lease) receipt.Result {
		return t.processor.Process(ctx, request, l)
	}), nil
}

// ignore returns a task that does nothing, for an event that the rule should not have
// sent here.
func ignore(id order.ID) sqs.Task {
	return sqs.Task{ID: id, Run: func(context.Context, sqs.Delivery, order.Lease) order.Result {
		return order.Result{Verdict: order.Done, Reason: receipt.ReasonIgnored}
	}}
}

// counted returns a task that counts what run wrote. The handler calls Count after Run.
func counted(id order.ID, k receipt.Key, run func(context.Context, order.Lease) receipt.Result) sqs.Task {
	var wrote receipt.Status
	return sqs.Task{
		ID:    id,
		Attrs: []slog.Attr{slog.String("receipt", string(k))},
		Run: func(ctx context.Context, _ sqs.Delivery, l order.Lease) order.Result {
			r := run(ctx, l)
			wrote = r.Receipt
			return r.Result
		},
		Count: func(m sqs.Meter, _ order.Result, _ time.Duration) {
			if wrote != "" {
				m.Count(metricReceipts, "Result", string(wrote))
			}
		},
	}
}

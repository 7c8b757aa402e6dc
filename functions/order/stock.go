package main

import (
	"context"
	"time"

	"orderonce/domain/order"
)

// process settles an order, see order.Processor.
type process func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result

// freesStock settles an order as the processor does, and cancels one that it leaves
// declined and that holds stock, so that its stock is available again. A delivery that
// dies in between is repeated, and finds the order declined again. An error leads to a
// redelivery too.
//
// The result of an order that it canceled stays declined: the metric Settled and its
// alarm count what came of the charge.
func freesStock(p *order.Processor, canceler order.Canceler) process {
	c := order.Cancellation{Store: p.Store, Payments: p.Payments, Canceler: canceler, Scope: p.Scope}
	return func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		r := p.Process(ctx, o, sent, l)
		if r.Verdict != order.Done || r.Status != order.Declined {
			return r
		}
		record, err := c.Store.Load(ctx, o.ID())
		if err == nil {
			record, err = c.CancelDeclined(ctx, record, 0, p.Now())
		}
		if err == nil {
			if record.Status != order.Canceled { // the customer was faster
				r.Status = record.Status
			}
			return r
		}
		failed := order.ResultOf(err)
		failed.Status, failed.Attempt, failed.Intent, failed.Trace = r.Status, r.Attempt, r.Intent, r.Trace
		return failed
	}
}

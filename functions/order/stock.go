package main

import (
	"context"
	"time"

	"orderonce/domain/order"
)

// process settles an order, see order.Processor.
type process func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result

// payments is Stripe as an order that may be canceled needs it.
type payments interface {
	order.Payments
	order.Canceler
}

// newProcess returns what settles an order. With a stock table it also cancels an order
// that was declined, so that its stock is available again.
func newProcess(c environment, store order.Store, p payments) process {
	processor := newProcessor(c, store, p)
	if c.Stock == "" {
		return processor.Process
	}
	return cancelDeclined(processor.Process, order.Cancellation{
		Store: store, Payments: p, Canceler: p, Scope: c.Scope.Order(),
	}, processor.Now)
}

// cancelDeclined returns p, which afterwards cancels an order that it leaves declined and
// that holds stock. A delivery that dies in between is repeated, and finds the order
// declined again. An error leads to a redelivery too.
//
// The result of an order that it canceled stays declined: the metric Settled and its
// alarm count what came of the charge.
func cancelDeclined(p process, c order.Cancellation, now func() time.Time) process {
	return func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		r := p(ctx, o, sent, l)
		if r.Verdict != order.Done || r.Status != order.Declined {
			return r
		}
		record, err := c.Store.Load(ctx, o.ID())
		if err == nil {
			record, err = c.CancelDeclined(ctx, record, 0, now())
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

package main

import (
	"context"
	"log/slog"
	"time"

	"orderonce/adapters/lambda"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// refunds looks at the refunds of charged orders, and reports those that a person must
// look at.
type refunds struct {
	refresh func(context.Context, order.ID) (refund.Account, error)
	now     func() time.Time
	allow   func(context.Context) error // waits until Stripe may be called once more
	log     *slog.Logger
	meter   *lambda.Meter
}

func (r refunds) recheck(ctx context.Context, id order.ID) (seq int, err error) {
	if err := r.allow(ctx); err != nil {
		return 0, err
	}
	account, err := r.refresh(ctx, id)
	for _, i := range account.Items {
		of := []slog.Attr{
			slog.String("order_id", string(id)), slog.String("refund_id", string(i.ID)),
			slog.String("provider_refund_id", string(i.Refund)),
		}
		switch now := r.now(); {
		case i.Abandoned(now):
			r.meter.Observe("OldestWaiting", "Status", string(order.Open), now.Sub(i.UpdatedAt))
			r.log.LogAttrs(ctx, slog.LevelWarn,
				"refund open without an attempt for a day: its message may be gone", of...)
		case i.Status == refund.Unknown:
			r.meter.Count("RefundsUnknown", "", "")
			r.log.LogAttrs(ctx, slog.LevelWarn, "refund unknown: a person must find out whether it was made", of...)
		case i.Status == refund.Pending && i.Failure == refund.UnknownStatus:
			r.log.LogAttrs(ctx, slog.LevelWarn, "refund without a known status at Stripe", of...)
		}
	}
	return account.Seq, err
}

package main

import (
	"context"
	"log/slog"
	"time"

	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/lambda"
	"orderonce/adapters/stripe"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// refunds looks at the refunds of charged orders, and reports those that a person must
// look at.
type refunds struct {
	refresher refund.Refresher
	allow     func(context.Context) error // waits until Stripe may be called once more
	log       *slog.Logger
	meter     *lambda.Meter
}

func newRefunds(store *dynamodb.Store, o stripe.Options) refund.Refresher {
	return refund.Refresher{
		Store: refundtable.New(store), Provider: striperefund.New(o), Scope: o.Scope, Now: time.Now,
	}
}

func (r refunds) recheck(ctx context.Context, id order.ID) (seq int, err error) {
	if err := r.allow(ctx); err != nil {
		return 0, err
	}
	account, err := r.refresher.Refresh(ctx, id)
	for _, i := range account.Items {
		switch now := r.refresher.Now(); {
		case i.Abandoned(now):
			r.meter.Observe("OldestWaiting", "Status", string(order.Open), now.Sub(i.UpdatedAt))
			r.log.LogAttrs(ctx, slog.LevelWarn, "refund open without an attempt for a day: its message may be gone",
				identifyRefund(id, i)...)
		case i.Status == refund.Pending && i.Failure == refund.UnknownStatus:
			r.log.LogAttrs(ctx, slog.LevelWarn, "refund without a known status at Stripe", identifyRefund(id, i)...)
		}
	}
	return account.Seq, err
}

func identifyRefund(id order.ID, i refund.Item) []slog.Attr {
	return []slog.Attr{
		slog.String("order_id", string(id)), slog.String("refund_id", string(i.ID)),
		slog.String("provider_refund_id", string(i.Refund)),
	}
}

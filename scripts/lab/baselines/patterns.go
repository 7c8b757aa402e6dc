package baselines

import (
	"context"
	"errors"
	"time"
)

// dedupeLife is the longer end of the 24 to 72 h that the article names.
const dedupeLife = 72 * time.Hour

// patterns is from an article that lists idempotency patterns, taken together and each in its strongest reading: a FIFO queue, a
// dedupe table keyed by the business key with a time to live, natural idempotency by Stripe's key, and side effects after the
// check.
//
// It promises that layers catch what one of them lets through, and they do so for a day. It is enough if every message is
// acknowledged or given up within the life of Stripe's key, 24 h. Whoever comes later, after a death between charge and record,
// or after the record has expired, charges again; and a failure that Stripe has stored under the key never ends.
func patterns(ctx context.Context, e Env, m Message) error {
	o, err := orderOf(m)
	if err != nil {
		return err
	}
	done := Item{ID: S("dedupe#" + o.ID), Expiration: N(e.Now().Add(dedupeLife).Unix())}
	row, err := e.Table.Get(ctx, done.id())
	if err != nil || len(row) > 0 {
		return err
	}
	if err := work(ctx, e, o, o.ID); err != nil {
		return err
	}
	err = e.Table.PutIf(ctx, done, Absent(ID))
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return nil // a twin was faster, and Stripe's key has made us one
	}
	return err
}

// stripeKeyOnly is the advice of Stripe's own pages and of many articles: one call under an idempotency key, here the orderId,
// and no table of ours.
//
// It promises that the same request is performed once while Stripe knows its key, and keeps that. It is enough if nothing comes
// back after 24 h. A first answer that was a 500 is stored too, so no redelivery within the day can end.
func stripeKeyOnly(ctx context.Context, e Env, m Message) error {
	o, err := orderOf(m)
	if err != nil {
		return err
	}
	return work(ctx, e, o, o.ID)
}

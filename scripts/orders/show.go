package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
)

type show struct {
	ID string `arg:"" help:"The orderId."`
}

// Help explains the command beyond its one line.
func (show) Help() string {
	return `It prints the order's row, its history, the goods that it holds, its refunds and what happens next.
With RECEIPTS_TABLE set it also prints the order's receipts. With SCOPE and STRIPE_SECRET_KEY set it
also reads Stripe, says how often the order was charged, and links its
payments in the Dashboard. It finds payments that no row names, for example after a restore from
backup; Stripe's search lags by a minute. It changes nothing.

Exit codes: 0 shown, 1 an error, 2 the order was charged more than once, or its row is missing.

Example: orders show ORD-1001`
}

// Run prints one order.
func (s show) Run(ctx context.Context, sh shell) error {
	c, cfg, err := connect[showConfig](ctx, sh)
	if err != nil {
		return err
	}
	f := report{id: order.ID(s.ID), now: sh.now()}
	if err := f.readTable(ctx, c.Orders, cfg); err != nil {
		return fmt.Errorf("show order %q: %w", s.ID, err)
	}
	notRead := errors.Join(f.readReceipts(ctx, c.Receipts, cfg), f.readStripe(ctx, sh.environ))
	if f.record == nil && len(f.intents) == 0 {
		return errors.Join(fmt.Errorf("show order %q: %w", s.ID, c.Orders.explain(cfg, order.ErrNotFound)), notRead)
	}
	if err := sh.result(f.text(), f.json()); err != nil {
		return err
	}
	switch charges := f.charges(); {
	case notRead != nil: // the row is shown, because Stripe may be what is down
		return notRead
	case f.record == nil:
		return exit{fmt.Errorf("order %q: its row is missing: restore it from %s", s.ID, f.charged()), 2}
	case charges > 1:
		return exit{fmt.Errorf("order %q: charged %d times", s.ID, charges), 2}
	}
	return nil
}

// explain adds to order.ErrNotFound where else the order may be.
func (c tableConfig) explain(cfg aws.Config, err error) error {
	if !errors.Is(err, order.ErrNotFound) {
		return err
	}
	return fmt.Errorf(`%w in table %q at %s
It may be:
  not delivered yet: ask again in a few seconds, or count the messages that wait:
    aws sqs get-queue-attributes --attribute-names All --queue-url "$QUEUE_URL"
  put by HTTP and not sent, so that its client must put it again:
    orders list --status not_sent
  parked in the dead-letter queue, with a reason:
    orders dead-letters list
  in another table: ORDERS_TABLE, --region and --profile must be those of its deployment`,
		err, c.Table, cmp.Or(aws.ToString(cfg.BaseEndpoint), cfg.Region))
}

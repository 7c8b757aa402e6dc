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

// Run prints one order and its refunds.
func (s show) Run(ctx context.Context, sh shell) error {
	c, cfg, err := connect[tableConfig](ctx, sh)
	if err != nil {
		return err
	}
	r, err := c.store(cfg).Load(ctx, order.ID(s.ID))
	if err != nil {
		return fmt.Errorf("show order %q: %w", s.ID, c.explain(cfg, err))
	}
	fmt.Fprint(sh.out, describe(r))
	if !r.Status.Charged() {
		return nil
	}
	a, err := c.refunds(cfg).Account(ctx, r.OrderID)
	if err != nil {
		return fmt.Errorf("show refunds of order %q: %w", s.ID, err)
	}
	if len(a.Items) > 0 || a.Outside != 0 {
		fmt.Fprint(sh.out, describeRefunds(a))
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
  parked in the dead-letter queue, with a reason:
    aws sqs receive-message --message-attribute-names All --visibility-timeout 0 --max-number-of-messages 10 \
      --queue-url "$DEAD_LETTER_QUEUE_URL"
  in another table: ORDERS_TABLE, --region and --profile must be those of its deployment`,
		err, c.Table, cmp.Or(aws.ToString(cfg.BaseEndpoint), cfg.Region))
}

package main

import (
	"context"
	"errors"
	"fmt"

	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type show struct {
	ID string `arg:"" help:"The orderId."`
}

// Run prints one order.
func (s show) Run(ctx context.Context, d cloud.Deployment) error {
	f, notRead, err := d.Ask(ctx, order.ID(s.ID))
	if err != nil {
		return fmt.Errorf("show order %q: %w", s.ID, err)
	}
	if f.Record == nil && len(f.Intents) == 0 {
		return errors.Join(fmt.Errorf("show order %q: %w", s.ID, d.Explain(order.ErrNotFound)), notRead)
	}
	if err := d.Result(f.Text(), f.JSON()); err != nil {
		return err
	}
	if notRead != nil { // the row is shown, because Stripe may be what is down
		return notRead
	}
	if len(f.Next().Act) > 0 {
		return shell.Left("order %q waits for a person: do what is next", s.ID)
	}
	return nil
}

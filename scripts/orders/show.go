package main

import (
	"context"
	"fmt"

	"orderonce/adapters/lambda"
	"orderonce/domain/order"
)

type show struct {
	ID string `arg:"" help:"The orderId."`
}

// Run prints one order.
func (s show) Run(ctx context.Context, sh shell) error {
	c, err := lambda.ReadEnv[tableConfig](sh.environ)
	if err != nil {
		return err
	}
	r, err := c.store().Load(ctx, order.ID(s.ID))
	if err != nil {
		return fmt.Errorf("show order %q: %w", s.ID, err)
	}
	fmt.Fprint(sh.out, describe(r))
	return nil
}

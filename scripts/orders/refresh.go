package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"orderonce/adapters/lambda"
	"orderonce/domain/order"
)

type refresh struct {
	ID    string `arg:"" help:"The orderId."`
	Scope string `placeholder:"SCOPE" help:"Expect the intent under this scope: for orders charged before SCOPE was corrected."`
}

// Run settles one order from Stripe's answer.
func (r refresh) Run(ctx context.Context, sh shell) error {
	c, err := lambda.ReadEnv[stripeConfig](sh.environ)
	if err != nil {
		return err
	}
	d, err := c.desk(r.Scope)
	if err != nil {
		return err
	}
	if err := d.refresh(ctx, order.ID(r.ID), sh.now(), sh.out); err != nil {
		return fmt.Errorf("refresh order %q: %w", r.ID, c.Orders.explain(err))
	}
	return nil
}

// desk is the operator's, in another scope than the environment's unless that is "".
func (c stripeConfig) desk(otherScope string) (desk, error) {
	if otherScope != "" {
		scope, err := order.NewScope(otherScope)
		if err != nil {
			return desk{}, err
		}
		c.Scope = string(scope)
	}
	return desk{c.Orders.store(), c.payments(), order.Scope(c.Scope)}, nil
}

// desk is where an operator looks orders up.
type desk struct {
	records  order.Records
	payments order.Payments
	scope    order.Scope
}

// refresh says what changed, and shows the order as it is now.
func (d desk) refresh(ctx context.Context, id order.ID, now time.Time, out io.Writer) error {
	before, err := d.records.Load(ctx, id)
	if err != nil {
		return err
	}
	after, err := order.Refresh(ctx, d.records, d.payments, d.scope, id, now)
	if err != nil {
		return err
	}
	if before.Status == after.Status {
		fmt.Fprintf(out, "unchanged: Stripe has nothing newer than %s\n\n", after.Status)
	} else {
		fmt.Fprintf(out, "settled: %s, it was %s\n\n", after.Status, before.Status)
	}
	fmt.Fprint(out, describe(after))
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"orderonce/adapters/lambda"
	"orderonce/domain/order"
)

type restore struct {
	ID     string `arg:"" help:"The orderId."`
	Intent string `arg:"" help:"Its PaymentIntent, such as pi_3Pretend: see the parked message's detail."`
	Scope  string `placeholder:"SCOPE" help:"Expect the intent under this scope instead of SCOPE."`
}

// Help explains the command beyond its one line.
func (restore) Help() string {
	return `Use it after the table was restored from a backup, for an order that was parked as record_lost. It writes the row that is missing,
or that is open without an intent, from the metadata of the order's PaymentIntent, binds the intent, and settles the row by what Stripe
says. It never moves money and never overwrites a row that names another intent or other content. Afterwards a redelivered message of
the order finds the intent and cannot charge it again.

Example: orders restore ORD-1001 pi_3PretendIntent`
}

// Run writes one order's row again.
func (r restore) Run(ctx context.Context, sh shell) error {
	c, err := lambda.ReadEnv[stripeConfig](sh.environ)
	if err != nil {
		return err
	}
	d, err := c.desk(r.Scope)
	if err != nil {
		return err
	}
	if err := d.restore(ctx, order.ID(r.ID), order.IntentID(r.Intent), sh.now(), sh.out); err != nil {
		return fmt.Errorf("restore order %q from intent %q: %w", r.ID, r.Intent, err)
	}
	return nil
}

// restore binds the intent to the order's row, and shows the order as it is now.
func (d desk) restore(ctx context.Context, id order.ID, intent order.IntentID, now time.Time, out io.Writer) error {
	after, err := order.Restore(ctx, d.records, d.payments, d.scope, id, intent, now)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "restored: the row names %s and is %s\n\n", after.Intent, after.Status)
	fmt.Fprint(out, describe(after))
	return nil
}

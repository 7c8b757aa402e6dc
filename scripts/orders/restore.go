package main

import (
	"context"
	"fmt"

	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type restore struct {
	ID     string `arg:"" help:"The orderId."`
	Intent string `arg:"" help:"Its PaymentIntent, such as pi_3Pretend: see the parked message's detail."`
	Scope  string `placeholder:"SCOPE" help:"Expect the intent under this scope instead of SCOPE."`
}

// Help explains the command beyond its one line.
func (restore) Help() string {
	return `Use it after the table was restored from a backup, for an order that was parked as
record_lost. It writes a row that is missing, or open without an intent, from the metadata of
the order's PaymentIntent, binds the intent, and settles the row from the intent's status. Then
it records the refunds that Stripe has of it, as refresh does. It moves no money, and it does
not overwrite a row with another intent or with different content. Afterwards a redelivered
message of the order finds the intent and cannot charge the order again.

Example: orders restore ORD-1001 pi_3PretendIntent`
}

// Run writes one order's row.
func (r restore) Run(ctx context.Context, sh shell.Shell) error {
	c, cfg, err := cloud.Connect[cloud.StripeEnv](ctx, sh)
	if err != nil {
		return err
	}
	if c, err = c.Under(r.Scope); err != nil {
		return err
	}
	c.Where(sh, cfg)
	id, bound := order.ID(r.ID), order.IntentID(r.Intent)
	after, err := order.Restore(
		ctx, c.Orders.Store(cfg), c.Payments(), order.Scope(c.Scope), id, bound, sh.Now())
	if err != nil {
		return fmt.Errorf("restore order %q from intent %q: %w", r.ID, r.Intent, err)
	}
	summary := fmt.Sprintf("restored: the row names %s and is %s\n\n", after.Intent, after.Status)
	return refreshRefunds(ctx, sh, c, cfg, summary, after)
}

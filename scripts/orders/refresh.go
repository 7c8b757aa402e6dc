package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

type refresh struct {
	ID     string `arg:"" optional:"" help:"The orderId."`
	AllDue bool   `help:"Every order that waits and is due, as the function of the schedule does."`
	Rate   int    `default:"10" help:"With --all-due: at most so many orders per second."`
	Scope  string `placeholder:"SCOPE" help:"Expect the intent under this scope: for orders charged before SCOPE was corrected."`
}

// Help explains the command beyond its one line.
func (refresh) Help() string {
	return `It reads the PaymentIntent and the refunds at Stripe and records what the row does not show. It
moves no money, so it is safe at any time. An interrupted run with --all-due loses nothing: run it again.

Exit codes: 0 done, 1 an error, 2 an order disagrees with Stripe, or could not be read.

Examples:
  orders refresh ORD-1001
  orders refresh --all-due`
}

// Validate returns an error unless the command line names one order, or all.
func (r refresh) Validate() error {
	if (r.ID == "") != r.AllDue {
		return errors.New("want either an orderId or --all-due")
	}
	return nil
}

// Run settles one order, or those that are due, from Stripe's answer.
func (r refresh) Run(ctx context.Context, sh shell) error {
	if r.AllDue {
		return r.allDue(ctx, sh)
	}
	c, cfg, err := connect[stripeConfig](ctx, sh)
	if err != nil {
		return err
	}
	o, err := c.operator(cfg, r.Scope)
	if err != nil {
		return err
	}
	c.Scope = string(o.scope)
	sh.where(c, cfg)
	summary, after, err := o.refresh(ctx, order.ID(r.ID), sh.now())
	if err != nil {
		return fmt.Errorf("refresh order %q: %w", r.ID, c.Orders.explain(cfg, err))
	}
	return o.refreshRefunds(ctx, sh, c.refresher(cfg, o.scope, sh.now), summary, after)
}

// refreshRefunds records the refunds of a charged order, and prints the order after the
// summary of what was done before.
func (o operator) refreshRefunds(
	ctx context.Context, sh shell, refresher *refund.Refresher, summary string, after order.Record,
) error {
	if !after.Status.Charged() {
		return sh.result(summary+describe(after), recordJSON(after))
	}
	account, err := refresher.Refresh(ctx, after.OrderID)
	if err == nil && account.Seq > after.Seq {
		summary += fmt.Sprintf("changes of refunds recorded: %d\n\n", account.Seq-after.Seq)
		after, err = o.records.Load(ctx, after.OrderID)
	}
	if err != nil {
		return fmt.Errorf("refresh refunds of order %q: %w", after.OrderID, err)
	}
	text := summary + describe(after)
	if len(account.Items) > 0 || account.Outside != 0 {
		text += describeRefunds(account)
	}
	return sh.result(text, recordJSON(after).withRefunds(account))
}

// refresher records what happened to refunds at Stripe.
func (c stripeConfig) refresher(cfg aws.Config, scope order.Scope, now func() time.Time) *refund.Refresher {
	return &refund.Refresher{
		Records: c.Orders.refunds(cfg), Provider: c.refunds(), Scope: scope, Now: now,
	}
}

// operator returns an operator in the given scope, or in the environment's if that is "".
func (c stripeConfig) operator(cfg aws.Config, otherScope string) (operator, error) {
	if otherScope != "" {
		scope, err := order.NewScope(otherScope)
		if err != nil {
			return operator{}, err
		}
		c.Scope = string(scope)
	}
	return operator{c.Orders.store(cfg), c.payments(), order.Scope(c.Scope)}, nil
}

// operator reads and settles the rows of one scope.
type operator struct {
	records  order.Records
	payments order.Payments
	scope    order.Scope
}

// refresh settles the row from the order's intent. It returns what changed, as text, and
// the order.
func (o operator) refresh(ctx context.Context, id order.ID, now time.Time) (string, order.Record, error) {
	before, err := o.records.Load(ctx, id)
	if err != nil {
		return "", before, err
	}
	after, err := order.Refresh(ctx, o.records, o.payments, o.scope, id, now)
	if err != nil {
		return "", after, err
	}
	if before.Status == after.Status {
		return fmt.Sprintf("unchanged: Stripe has no newer status than %s\n\n", after.Status), after, nil
	}
	return fmt.Sprintf("settled: %s, it was %s\n\n", after.Status, before.Status), after, nil
}

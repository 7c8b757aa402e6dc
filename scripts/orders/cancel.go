package main

import (
	"context"
	"errors"
	"fmt"

	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type cancel struct {
	ID  string `arg:"" help:"The orderId."`
	Yes bool   `help:"Do not ask, for scripts."`
}

// Run cancels one order.
func (c cancel) Run(ctx context.Context, d cloud.Deployment) error {
	if err := c.cancel(ctx, d); err != nil {
		return fmt.Errorf("cancel order %q: %w", c.ID, d.Explain(err))
	}
	return nil
}

func (c cancel) cancel(ctx context.Context, d cloud.Deployment) error {
	store, payments, id := d.Store(), d.Payments(), order.ID(c.ID)
	before, err := store.Load(ctx, id)
	if err != nil {
		return err
	}
	d.Where()
	fmt.Fprintln(d.People(), view.Order(before))
	if !c.Yes && !d.Confirms("Type the order id to cancel it for ever: ", c.ID) {
		return shell.ErrNotConfirmed
	}
	canceling := order.Cancellation{Store: store, Payments: payments, Canceler: payments, Scope: d.Scope}
	after, err := canceling.Cancel(ctx, id, d.Now())
	if lost, ok := errors.AsType[*order.RecordLostError](err); ok {
		return fmt.Errorf("%w: first orders restore %s %s", err, id, lost.Intent)
	}
	if err != nil {
		return err
	}
	if after.Status != order.Canceled {
		return cloud.NotCanceledError{Status: after.Status}
	}
	fmt.Fprintf(d.People(), "canceled: it was %s\n", before.Status)
	return d.Record(view.NewOrderJSON(after))
}

package main

import (
	"context"
	"fmt"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// later settles what the messages have left: the function of the schedule settles the
// order whose message was lost, if there is one; then people and the bank act. It returns
// what happened, by order.
func (l *local) later(ctx context.Context, lost order.ID) (map[order.ID]string, error) {
	happened := map[order.ID]string{}
	if lost != "" {
		if err := l.reconcile(ctx, lost); err != nil {
			return nil, err
		}
		happened[lost] = "killed, message and webhook lost; settled by reconcile"
	}
	for r, err := range l.Records(ctx) {
		if err != nil {
			return nil, err
		}
		if did, err := l.act(r); err != nil {
			return nil, err
		} else if did != "" {
			happened[r.OrderID] = did + ", settled by webhook"
		}
	}
	return happened, l.Heard(ctx)
}

// reconcile invokes the function of the schedule until it has settled the order, which it
// leaves alone while the lease of the killed function runs.
func (l *local) reconcile(ctx context.Context, id order.ID) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := l.Look(ctx); err != nil {
			return err
		}
		r, err := l.Store.Load(ctx, id)
		if err != nil || r.Status != order.Open {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("reconcile order %s, see %s: %w", id, l.folder.log(), context.Cause(ctx))
		}
	}
}

// act lets the customer authenticate an order that waits for it, and the bank clear a
// pending one. It returns what was done, or "".
func (l *local) act(r order.Record) (did string, err error) {
	l.Stripe.Machine(func(m *stripetest.Machine) {
		switch r.Status { //nolint:exhaustive // the others wait for nothing
		case order.ActionRequired:
			did, err = "authenticated", m.CustomerPays(l.Stripe.Now(), string(r.Intent))
		case order.Pending:
			did, err = "cleared", m.Settle(l.Stripe.Now(), string(r.Intent), true)
		}
	})
	return did, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// attend does what follows from a kill as messages wait, and returns what waits for it.
func (l *local) attend(ctx context.Context, k *killer) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		select {
		case <-k.killed:
		case <-ctx.Done():
		}
		done <- errors.Join(l.cancelUncharged(ctx, k.deaths()), l.endRefundLeases(ctx, k.deaths()))
	}()
	ended := sync.OnceValue(func() error { return <-done })
	return func() error {
		if len(k.deaths()) == 0 {
			return nil
		}
		return ended()
	}
}

func (l *local) cancelUncharged(ctx context.Context, dead []victim) (err error) {
	c := order.Cancellation{Store: l.Store, Payments: l.Payments, Canceler: l.Payments, Scope: system.Scope}
	for _, v := range dead {
		if v.at == stripetest.Create && err == nil {
			_, err = c.Cancel(ctx, v.id, time.Now())
		}
	}
	return err
}

// endRefundLeases moves the clocks until the lease of a refund has ended.
func (l *local) endRefundLeases(ctx context.Context, dead []victim) error {
	if !slices.ContainsFunc(dead, func(v victim) bool { return v.at == stripetest.CreateRefund }) {
		return nil
	}
	fmt.Printf("Killed after Stripe made the refund. No other worker takes it over before its lease ends: "+
		"skipping %.0f minutes ...\n", order.MaxLease.Minutes())
	return l.SkipLeases(ctx)
}

// later settles what the messages have left, and notes what happened, by order.
func (l *local) later(ctx context.Context, dead []victim, happened map[order.ID]string) error {
	if err := l.reconcileLost(ctx, dead, happened); err != nil {
		return err
	}
	if err := l.awaitWebhooks(ctx, happened); err != nil {
		return err
	}
	return nil
}

// reconcileLost lets the function of the schedule settle the order whose message was lost
// after its charge, if there is one.
func (l *local) reconcileLost(ctx context.Context, dead []victim, happened map[order.ID]string) error {
	for _, v := range dead {
		if v.lost && v.at == stripetest.Confirm {
			if err := l.reconcile(ctx, v.id); err != nil {
				return err
			}
			happened[v.id] = "killed, every message lost; settled by reconcile"
		}
	}
	return nil
}

// awaitWebhooks lets people and the bank act, and waits until the webhooks of that are
// answered.
func (l *local) awaitWebhooks(ctx context.Context, happened map[order.ID]string) error {
	for r, err := range l.Orders(ctx) {
		if err != nil {
			return err
		}
		if did, err := l.act(r.Record); err != nil {
			return err
		} else if did != "" {
			happened[r.OrderID] = did + ", settled by webhook"
		}
	}
	return l.Heard(ctx)
}

// reconcile invokes the function of the schedule until it has settled the order, which it
// leaves alone while the lease of the killed function runs.
func (l *local) reconcile(ctx context.Context, id order.ID) error {
	err := system.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		if err := l.Look(ctx); err != nil {
			return false, err
		}
		r, err := l.Store.Load(ctx, id)
		return r.Status != order.Open, err
	})
	if err != nil {
		return fmt.Errorf("reconcile order %s, see %s: %w", id, l.folder.log(), err)
	}
	return nil
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

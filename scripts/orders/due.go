package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
)

var errRate = errors.New("--rate: want at least 1")

// allDue looks at every order that is due, with the code of the function of the schedule.
func (r refresh) allDue(ctx context.Context, sh shell) error {
	if r.Rate < 1 {
		return errRate
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
	refresher := c.refresher(cfg, o.scope, sh.now)
	tick := time.NewTicker(time.Second / time.Duration(r.Rate))
	defer tick.Stop()
	looked := 0
	d := order.Reconciler{
		Follower: order.Follower{Records: o.records, Payments: o.payments, Scope: o.scope, Now: sh.now},
		Waiting:  c.Orders.store(cfg), Parallel: 1,
		Allow: func(ctx context.Context) error {
			sh.progress("%d orders", looked)
			looked++
			select {
			case <-tick.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		Refunds: func(ctx context.Context, id order.ID) error {
			_, err := refresher.Refresh(ctx, id)
			return err
		},
	}
	done, err := d.Run(ctx, sh.now().AddDate(1, 0, 0))
	sh.progress("")
	return errors.Join(sh.result(dueText(done), dueJSON(done)), err, dueError(ctx, done))
}

// dueText formats a run for a person.
func dueText(d order.Reconciled) string {
	var b strings.Builder
	for _, followed := range slices.Sorted(maps.Keys(d.Followed)) {
		fmt.Fprintf(&b, "%-12s %d\n", followed, d.Followed[followed])
	}
	for _, r := range d.NoIntent {
		fmt.Fprintf(&b, "no payment   %s: its message must come back, or was lost: post it again\n", r.OrderID)
	}
	for _, r := range d.Mismatched {
		fmt.Fprintf(&b, "MISMATCH     %s, %s: orders show %s\n", r.OrderID, r.Status, r.OrderID)
	}
	if b.Len() == 0 {
		return "no order is due\n"
	}
	return b.String()
}

// dueOutcome is the result of refresh --all-due in the output of --json.
type dueOutcome struct {
	Results     map[order.Followed]int `json:"results"`
	NoIntent    []order.ID             `json:"withoutPayment,omitempty"`
	Mismatched  []order.ID             `json:"mismatched,omitempty"`
	Unavailable int                    `json:"unavailable,omitempty"`
}

func dueJSON(d order.Reconciled) dueOutcome {
	return dueOutcome{d.Followed, idsOf(d.NoIntent), idsOf(d.Mismatched), d.Unavailable}
}

func idsOf(rs []order.Record) (ids []order.ID) {
	for _, r := range rs {
		ids = append(ids, r.OrderID)
	}
	slices.Sort(ids)
	return ids
}

// dueError returns an error unless every due order was looked at and agrees with Stripe.
func dueError(ctx context.Context, d order.Reconciled) error {
	switch {
	case ctx.Err() != nil:
		return exit{errors.New("interrupted: orders that were not looked at are still due, run it again"), 2}
	case d.Unavailable > 0:
		return exit{fmt.Errorf("%d orders could not be read: they are still due, run it again", d.Unavailable), 2}
	case len(d.Mismatched) > 0:
		return exit{fmt.Errorf("%d orders disagree with Stripe", len(d.Mismatched)), 2}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/stripe"
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
	calls := 0
	allow := func(ctx context.Context) error {
		sh.progress("%d calls to Stripe", calls)
		calls++
		select {
		case <-tick.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d := order.Reconciler{
		Follower: order.Follower{
			Records: o.records, Payments: order.Paced{Payments: o.payments, Allow: allow}, Scope: o.scope,
			Mode: stripe.ModeOf(c.Key.Reveal()), Now: sh.now,
		},
		Waiting: c.Orders.store(cfg), Parallel: 1,
		Refunds: func(ctx context.Context, id order.ID) error {
			err := allow(ctx)
			if err == nil {
				_, err = refresher.Refresh(ctx, id)
			}
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
	for _, f := range slices.Concat(d.Failed, d.Unavailable) {
		fmt.Fprintf(&b, "FAILED       %s: %v\n", f.OrderID, f.Err)
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
	Failed      map[order.ID]string    `json:"failed,omitempty"`      // why, such as a corrupt row
	Unavailable map[order.ID]string    `json:"unavailable,omitempty"` // the table or Stripe did not answer
}

func dueJSON(d order.Reconciled) dueOutcome {
	return dueOutcome{
		d.Followed, idsOf(d.NoIntent), idsOf(d.Mismatched), errorsOf(d.Failed), errorsOf(d.Unavailable),
	}
}

func errorsOf(looks []order.FailedLook) map[order.ID]string {
	all := map[order.ID]string{}
	for _, f := range looks {
		all[f.OrderID] = f.Err.Error()
	}
	return all
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
	case len(d.Failed)+len(d.Unavailable) > 0:
		return exit{fmt.Errorf("%d orders could not be looked at: they are due again after 15 minutes or more",
			len(d.Failed)+len(d.Unavailable)), 2}
	case len(d.Mismatched) > 0:
		return exit{fmt.Errorf("%d orders disagree with Stripe", len(d.Mismatched)), 2}
	}
	return nil
}

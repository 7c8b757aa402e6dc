package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/domain/settle"
)

// Plan is what a repair does to one order, from its findings.
type Plan struct {
	OrderID  order.ID
	Intent   order.IntentID
	Findings []Finding
}

// String returns the plan in one line.
func (p Plan) String() string {
	var steps []string
	for _, f := range p.Findings {
		step := f.Class.of().step
		if f.Bind {
			step = "bind " + string(f.Intent) + " and " + step
		}
		if f.Class == MissingRow {
			step = "write the row, " + step
		}
		steps = append(steps, step)
	}
	return fmt.Sprintf("%s  %s", p.OrderID, strings.Join(steps, ", "))
}

// Plans returns what a repair does. An order with a finding that needs judgement is left
// alone, unless that is an unknown refund.
func Plans(findings iter.Seq2[Finding, error]) iter.Seq2[Plan, error] {
	return func(yield func(Plan, error) bool) {
		var p Plan
		for f, err := range findings {
			if err != nil {
				yield(Plan{}, err)
				return
			}
			if f.Class == RefundUnknown {
				continue
			}
			if f.OrderID != p.OrderID {
				if p.repairable() && !yield(p, nil) {
					return
				}
				p = Plan{OrderID: f.OrderID, Intent: f.Intent}
			}
			p.Findings = append(p.Findings, f)
		}
		if p.repairable() {
			yield(p, nil)
		}
	}
}

func (p Plan) repairable() bool {
	return len(p.Findings) > 0 && !p.has(func(f Finding) bool { return !f.Class.Repairable() })
}

func (p Plan) has(what func(Finding) bool) bool { return slices.ContainsFunc(p.Findings, what) }

func disputed(f Finding) bool { return f.Disputed }

// Repairer makes rows show what Stripe did, as a worker or `orders restore` would. It
// moves no money.
type Repairer struct {
	Follower settle.Follower
	Refunds  refund.Refresher
}

// Repair carries out a plan. It repeats a plan once whose row changed at the same moment.
// Errors: those of settle.Restore, settle.Refresh, refund.Refresher and
// settle.Follower.
func (r *Repairer) Repair(ctx context.Context, p Plan) error {
	err := r.repair(ctx, p)
	if errors.Is(err, order.ErrStale) {
		err = r.repair(ctx, p)
	}
	return err
}

func (r *Repairer) repair(ctx context.Context, p Plan) error {
	if err := raiseSeq(ctx, r.Follower.Store, p.OrderID); err != nil && !errors.Is(err, order.ErrNotFound) {
		return err
	}
	follow, err := r.Follower, error(nil)
	if p.has(func(f Finding) bool { return f.Bind }) {
		_, err = settle.Restore(ctx, follow.Store, follow.Payments, follow.Scope, p.OrderID, p.Intent, follow.Now())
	} else {
		_, err = settle.Refresh(ctx, follow.Store, follow.Payments, follow.Scope, p.OrderID, follow.Now())
	}
	if err != nil {
		return err
	}
	_, err = r.Refunds.Refresh(ctx, p.OrderID)
	if err == nil && p.has(disputed) {
		_, _, err = follow.Follow(ctx, settle.Hint{
			OrderID: p.OrderID, Scope: follow.Scope, Intent: p.Intent, Disputed: true,
		})
	}
	return err
}

// raiseSeq sets an order's seq to that of its last event, if it is lower: its row was put
// back from a backup, and the next event would collide with one that exists.
func raiseSeq(ctx context.Context, s order.Store, id order.ID) error {
	r, err := s.Load(ctx, id)
	if err != nil {
		return err
	}
	raised := r
	for _, e := range r.Events {
		raised.Seq = max(raised.Seq, e.Seq)
	}
	raised.Events = nil
	_, err = s.Save(ctx, r, raised)
	return order.About("raise seq of", id, err)
}

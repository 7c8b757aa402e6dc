package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/settle"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type refresh struct {
	ID     string `arg:"" optional:"" help:"The orderId."`
	AllDue bool   `help:"Every order that waits and is due, as the function of the schedule does."`
	Rate   int    `default:"10" help:"With --all-due: at most so many orders per second."`
	Scope  string `placeholder:"SCOPE" help:"Expect the intent under this scope: for orders charged before SCOPE was corrected."`
}

// Validate returns an error unless the command line names one order, or all.
func (r refresh) Validate() error {
	if (r.ID == "") != r.AllDue {
		return errors.New("want either an orderId or --all-due")
	}
	return nil
}

// Run settles one order, or those that are due, from Stripe's answer.
func (r refresh) Run(ctx context.Context, d cloud.Deployment) error {
	d, err := under(d, r.Scope)
	if err != nil {
		return err
	}
	if r.AllDue {
		return r.allDue(ctx, d)
	}
	summary, after, err := settleRow(ctx, d, order.ID(r.ID))
	if err != nil {
		return fmt.Errorf("refresh order %q: %w", r.ID, d.Explain(err))
	}
	return printRow(ctx, d, summary, after)
}

// under returns the deployment under another scope, unless that is "", and prints what is
// about to change.
func under(d cloud.Deployment, scope string) (_ cloud.Deployment, err error) {
	if scope != "" {
		d.Scope, err = order.NewScope(scope)
	}
	if err == nil {
		d.Where()
	}
	return d, err
}

// printRow prints the order after the summary of what was done before, "" if that is
// nothing.
func printRow(ctx context.Context, d cloud.Deployment, summary string, after order.Record) error {
	if after.Status.Charged() {
		return refreshRefunds(ctx, d, summary, after)
	}
	return d.Result(cmp.Or(summary, unchanged(after))+view.Order(after), view.NewOrderJSON(after))
}

func unchanged(after order.Record) string {
	return fmt.Sprintf("unchanged: Stripe has no newer status than %s\n\n", after.Status)
}

// refreshRefunds records the refunds of a charged order, and prints it.
func refreshRefunds(ctx context.Context, d cloud.Deployment, summary string, after order.Record) error {
	account, err := d.Refresher().Refresh(ctx, after.OrderID)
	if err == nil && account.Seq > after.Seq {
		summary += fmt.Sprintf("changes of refunds recorded: %d; the order is %s, it was %s\n\n",
			account.Seq-after.Seq, account.Status, after.Status)
		after, err = d.Store().Load(ctx, after.OrderID)
	}
	if err != nil {
		return fmt.Errorf("refresh refunds of order %q: %w", after.OrderID, err)
	}
	text := cmp.Or(summary, unchanged(after)) + view.Order(after)
	if len(account.Items) > 0 || account.Outside != 0 {
		text += view.Refunds(account)
	}
	return d.Result(text, view.NewOrderJSON(after).WithRefunds(account))
}

// settleRow settles the row from the order's intent. It returns what changed, as text
// or "", and the order.
func settleRow(ctx context.Context, d cloud.Deployment, id order.ID) (string, order.Record, error) {
	store := d.Store()
	before, err := store.Load(ctx, id)
	if err != nil {
		return "", before, err
	}
	after, err := settle.Refresh(ctx, store, d.Payments(), d.Scope, id, d.Now())
	if err != nil {
		return "", after, err
	}
	if before.Status == after.Status {
		return "", after, nil
	}
	return fmt.Sprintf("settled: %s, it was %s\n\n", after.Status, before.Status), after, nil
}

// allDue looks at every order that is due, with the code of the function of the schedule.
func (r refresh) allDue(ctx context.Context, d cloud.Deployment) error {
	if r.Rate < 1 {
		return shell.ErrRate
	}
	refresher, store := d.Refresher(), d.Store()
	pace, calls := cloud.NewPace(float64(r.Rate)), 0
	allow := func(ctx context.Context) error {
		d.Progress("%d calls to Stripe", calls)
		calls++
		return pace.Wait(ctx, 1)
	}
	due := settle.Reconciler{
		Follower: settle.Follower{
			Store: store, Payments: settle.Paced{Payments: d.Payments(), Allow: allow}, Scope: d.Scope,
			Mode: stripe.ModeOf(d.Key.Reveal()), Now: d.Now,
			Refunds: func(ctx context.Context, id order.ID) (int, error) {
				if err := allow(ctx); err != nil {
					return 0, err
				}
				return refresher.Seq(ctx, id)
			},
		},
		Waiting: store, Parallel: 1,
	}
	done, err := due.Run(ctx, d.Now().AddDate(1, 0, 0))
	d.Progress("")
	text, outcome := dueReport(done)
	return errors.Join(d.Result(text, outcome), err, dueError(ctx, done))
}

// dueOutcome is the result of refresh --all-due in the output of --json.
type dueOutcome struct {
	Results     map[settle.Followed]int `json:"results"`
	NoIntent    []order.ID              `json:"withoutPayment,omitempty"`
	Mismatched  []order.ID              `json:"mismatched,omitempty"`
	Failed      map[order.ID]string     `json:"failed,omitempty"`      // why, such as a corrupt row
	Unavailable map[order.ID]string     `json:"unavailable,omitempty"` // the table or Stripe did not answer
}

func dueReport(d settle.Reconciled) (string, dueOutcome) {
	o := dueOutcome{Results: d.Followed, Failed: map[order.ID]string{}, Unavailable: map[order.ID]string{}}
	var b strings.Builder
	for _, followed := range slices.Sorted(maps.Keys(d.Followed)) {
		fmt.Fprintf(&b, "%-12s %d\n", followed, d.Followed[followed])
	}
	failed := func(all []settle.FailedRecheck, errs map[order.ID]string) {
		for _, f := range all {
			errs[f.OrderID] = f.Err.Error()
			fmt.Fprintf(&b, "FAILED       %s: %v\n", f.OrderID, f.Err)
		}
	}
	failed(d.Failed, o.Failed)
	failed(d.Unavailable, o.Unavailable)
	for _, r := range d.NoIntent {
		o.NoIntent = append(o.NoIntent, r.OrderID)
		fmt.Fprintf(&b, "no payment   %s: its message must come back; if there is none, post it again\n", r.OrderID)
	}
	for _, r := range d.Mismatched {
		o.Mismatched = append(o.Mismatched, r.OrderID)
		fmt.Fprintf(&b, "MISMATCH     %s, %s: orders show %s\n", r.OrderID, r.Status, r.OrderID)
	}
	slices.Sort(o.NoIntent)
	slices.Sort(o.Mismatched)
	return cmp.Or(b.String(), "no order is due\n"), o
}

// dueError returns an error unless every due order was looked at and agrees with Stripe.
func dueError(ctx context.Context, d settle.Reconciled) error {
	switch failed := len(d.Failed) + len(d.Unavailable); {
	case ctx.Err() != nil:
		return shell.Left("interrupted: orders that were not looked at are still due, run it again")
	case failed > 0:
		return shell.Left("%d orders could not be looked at: they are due again after 15 minutes or more", failed)
	case len(d.Mismatched) > 0:
		return shell.Left("%d orders disagree with Stripe", len(d.Mismatched))
	}
	return nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	registrationtable "orderonce/adapters/dynamodb/registrations"
	"orderonce/domain/intake"
	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type list struct {
	Status       []order.Status `placeholder:"S" help:"Only orders with this status, such as pending. Repeat it for others."`
	Due          bool           `help:"Only orders that are due for a recheck now."`
	CreatedSince shell.Moment   `placeholder:"T" help:"Only orders created at that time or later: 2026-11-01, 2026-11-01T08:00:00Z, or how long ago, such as 26h."`
	CreatedUntil shell.Moment   `placeholder:"T" help:"Only orders created before."`
	UpdatedSince shell.Moment   `placeholder:"T" aliases:"since" help:"Only orders that changed at that time or later."`
	UpdatedUntil shell.Moment   `placeholder:"T" aliases:"until" help:"Only orders that changed last before."`
	Limit        int            `default:"100" help:"At most so many orders; 0 for all."`
	Holding      bool           `help:"Only orders that hold stock, which wait."`
	Scan         bool           `help:"Allow a scan of the whole table, which other orders than those that wait need."`
}

// waitsOnly reports whether the index has all orders that are asked for.
func (l list) waitsOnly() bool {
	for _, s := range l.Status {
		if s != order.Open && s != order.ActionRequired && s != order.Pending && s != intake.NotSent {
			return false
		}
	}
	return len(l.Status) > 0
}

// Run prints the orders.
func (l list) Run(ctx context.Context, d cloud.Deployment) error {
	for _, s := range l.Status {
		if s != intake.NotSent && !slices.Contains(order.Statuses(), s) {
			return fmt.Errorf("--status %q: want one of %s", s, statusNames())
		}
	}
	if l.Due || l.Holding && !l.Scan || l.waitsOnly() {
		return l.print(d.Shell, l.waiting(ctx, d))
	}
	const instead = "add --scan; what waits needs none: --status open --status pending --status action_required"
	if err := allowScan(ctx, d, l.Scan, instead); err != nil {
		return err
	}
	return l.print(d.Shell, d.Rows(ctx, cloud.NewPace(0)))
}

func (l list) waiting(ctx context.Context, d cloud.Deployment) iter.Seq2[cloud.Row, error] {
	store, until := d.Store(), cloud.LastDue()
	if l.Due {
		until = d.Now()
	}
	return func(yield func(cloud.Row, error) bool) {
		for id, err := range store.Due(ctx, until) {
			r := cloud.Row{}
			if err == nil {
				r.Record, err = store.Load(ctx, id)
			}
			if err == nil && d.JSON { // only JSON has the refunds
				r.Account, err = d.Accounts().Load(ctx, id)
			}
			if errors.Is(err, order.ErrNotFound) { // erased since
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		registrations := registrationtable.Store{Orders: store}
		for r, err := range registrations.Unsent(ctx, until) {
			unsent := order.Record{
				OrderID: r.OrderID, Status: intake.NotSent, Total: r.Total, CreatedAt: r.At, UpdatedAt: r.At,
				LastError: "its client must put it again",
			}
			if !yield(cloud.Row{Record: unsent}, err) {
				return
			}
		}
	}
}

// allowScan prints what a scan of the table costs. Unless it is allowed, that is an error
// with what to do instead.
func allowScan(ctx context.Context, d cloud.Deployment, allowed bool, instead string) error {
	out, err := sdk.NewFromConfig(d.AWS).DescribeTable(ctx, &sdk.DescribeTableInput{TableName: &d.Table})
	if err != nil {
		return fmt.Errorf("describe table %q: %w", d.Table, err)
	}
	const perUnit = 8 << 10 // bytes of an eventually consistent read
	size := aws.ToInt64(out.Table.TableSizeBytes)
	cost := fmt.Sprintf("a scan of table %s: %d items, %.1f MB, about %d read request units",
		d.Table, aws.ToInt64(out.Table.ItemCount), float64(size)/1e6, size/perUnit+1)
	if !allowed {
		return fmt.Errorf("this needs %s: %s", cost, instead)
	}
	fmt.Fprintln(d.ErrOut, cost)
	return nil
}

// print prints the orders that match, as they are found. An order that cannot be decoded
// is named, and the others follow.
func (l list) print(sh shell.Shell, found iter.Seq2[cloud.Row, error]) error {
	var corrupt []error
	n := 0
	for r, err := range found {
		sh.Progress("")
		switch {
		case err != nil && r.OrderID == "":
			return err
		case err != nil:
			corrupt = append(corrupt, fmt.Errorf("order %q: %w", r.OrderID, err))
			continue
		case !l.matches(r.Record, sh.Now()):
			continue
		case l.Limit > 0 && n == l.Limit:
			fmt.Fprintf(sh.ErrOut, "the first %d orders: --limit 0 prints all\n", n)
			return errors.Join(corrupt...)
		}
		n++
		if err := sh.Result(l.listed(r.Record), view.NewOrderJSON(r.Record).WithRefunds(r.Account)); err != nil {
			return err
		}
	}
	sh.Progress("")
	if n == 0 {
		fmt.Fprintln(sh.ErrOut, "no such order")
	}
	return errors.Join(corrupt...)
}

func (l list) matches(r order.Record, now time.Time) bool {
	return (len(l.Status) == 0 || slices.Contains(l.Status, r.Status)) && (!l.Holding || len(r.Stock) > 0) &&
		within(r.UpdatedAt, l.UpdatedSince, l.UpdatedUntil, now) &&
		within(r.CreatedAt, l.CreatedSince, l.CreatedUntil, now)
}

// within reports whether t is in a period, each end of which may be open.
func within(t time.Time, since, until shell.Moment, now time.Time) bool {
	return !t.Before(since.At(now)) && (!until.Typed() || t.Before(until.At(now)))
}

// listed formats an order as one line, with the time that was asked for.
func (l list) listed(r order.Record) string {
	at := "updated " + view.Stamp(r.UpdatedAt)
	if l.CreatedSince.Typed() || l.CreatedUntil.Typed() {
		at = "created " + view.Stamp(r.CreatedAt)
	}
	return fmt.Sprintf("%-24s %-18s %14s  %s  %s\n", r.OrderID, r.Status, r.Total, at,
		cmp.Or(r.Failure, view.LastError(r), string(r.Intent)))
}

func statusNames() string {
	var all []string
	for _, s := range order.Statuses() {
		all = append(all, string(s))
	}
	return strings.Join(append(all, intake.NotSent), ", ")
}

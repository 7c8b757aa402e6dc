package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/settle"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/salvage"
	"orderonce/scripts/orders/shell"
)

type restore struct {
	ID        string         `arg:"" optional:"" help:"The orderId."`
	Intent    string         `arg:"" optional:"" help:"Its PaymentIntent, such as pi_3Pretend. Default: the one that Stripe's search finds."`
	FromTable string         `placeholder:"TABLE" help:"Bring back every order that ORDERS_TABLE lacks, or has in an older state, from this table."`
	Status    []order.Status `placeholder:"S" help:"With --from-table: only orders with this status there. Repeat it for others."`
	TableRate float64        `default:"20" placeholder:"N" help:"With --from-table: pages of the scan in a second, at most. Each costs 256 read units."`
	Scope     string         `placeholder:"SCOPE" help:"Expect the intent under this scope instead of SCOPE."`
	Yes       bool           `help:"Do not ask, for scripts."`
}

// Validate returns an error unless the command line names an order, or a table.
func (r restore) Validate() error {
	if (r.ID == "") == (r.FromTable == "") {
		return errors.New("want either an orderId or --from-table")
	}
	return nil
}

// Run writes one order's row, or brings back those of a table.
func (r restore) Run(ctx context.Context, sh shell.Shell) error {
	if r.FromTable != "" {
		return r.salvageTable(ctx, sh)
	}
	d, err := cloud.OpenStripe(ctx, sh)
	if err == nil {
		d, err = under(d, r.Scope)
	}
	if err == nil {
		err = r.one(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("restore order %q: %w", r.ID, err)
	}
	return nil
}

// one shows what the table and Stripe have of one order, asks, and binds its row.
func (r restore) one(ctx context.Context, d cloud.Deployment) error {
	id, bound := order.ID(r.ID), order.IntentID(r.Intent)
	d.ReceiptsTable = "" // they decide nothing here
	f, notRead, err := d.Ask(ctx, id)
	if err = cmp.Or(err, notRead); err != nil {
		return err
	}
	fmt.Fprintln(d.People(), f.Text())
	if bound == "" {
		if bound, err = f.Restorable(); err != nil {
			return err
		}
	}
	ask := fmt.Sprintf("Type the order id to bind its row to %s. No money moves: ", bound)
	if !r.Yes && !d.Confirms(ask, r.ID) {
		return shell.ErrNotConfirmed
	}
	after, err := settle.Restore(ctx, d.Store(), d.Payments(), d.Scope, id, bound, d.Now())
	if err != nil {
		return fmt.Errorf("from intent %q: %w", bound, err)
	}
	summary := fmt.Sprintf("restored: the row names %s and is %s\n\n", after.Intent, after.Status)
	return printRow(ctx, d, summary, after)
}

var errSameTable = errors.New("--from-table: want the damaged table, not ORDERS_TABLE itself")

// salvaged is the result of restore --from-table in the output of --json.
type salvaged struct {
	Found  map[order.Status]int `json:"found"` // to bring back, by their status in the damaged table
	Back   int                  `json:"broughtBack"`
	Alone  map[order.ID]string  `json:"leftAlone"` // and why
	orders []order.ID
}

// salvageTable brings orders back from a damaged table: it prints a plan, asks, and
// carries it out.
func (r restore) salvageTable(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.Open(ctx, sh, "ORDERS_TABLE")
	if err == nil && r.FromTable == d.Table {
		err = errSameTable
	}
	if err != nil {
		return err
	}
	out, pace := d.People(), cloud.NewPace(r.TableRate)
	fmt.Fprintf(out, "from table %s to table %s in %s\n\n", r.FromTable, d.Table, d.AWS.Region)
	tables := salvage.Tables{
		Damaged: dynamodb.New(d.AWS, r.FromTable), Restored: d.Store(), Now: d.Now,
		Wait:     func(ctx context.Context) error { return pace.Wait(ctx, 1) },
		Progress: func(read int) { d.Progress("%d orders read", read) },
	}
	s, err := r.plan(ctx, tables)
	d.Progress("")
	if err != nil {
		return err
	}
	for _, status := range slices.Sorted(maps.Keys(s.Found)) {
		fmt.Fprintf(out, "%9d %s\n", s.Found[status], status)
	}
	fmt.Fprintf(out, "%9d orders to bring back, %d to leave alone\n", len(s.orders), len(s.Alone))
	ask := fmt.Sprintf("Type \"restore\" to bring back %d orders. No money moves: ", len(s.orders))
	if len(s.orders) > 0 && !r.Yes && !d.Confirms(ask, "restore") {
		return shell.ErrNotConfirmed
	}
	for n, id := range s.orders {
		f, err := tables.Bring(ctx, id)
		switch {
		case err != nil && !errors.Is(err, salvage.ErrChanged):
			return fmt.Errorf("%d of %d orders brought back, run it again: %w", s.Back, len(s.orders), err)
		case err != nil:
			s.Alone[id] = err.Error()
		case f.Why != "":
			s.Alone[id] = f.Why
		default:
			s.Back++
		}
		d.Progress("%d of %d brought back", n+1, len(s.orders))
	}
	d.Progress("")
	return s.report(d)
}

func (r restore) plan(ctx context.Context, tables salvage.Tables) (salvaged, error) {
	s := salvaged{Found: map[order.Status]int{}, Alone: map[order.ID]string{}}
	for f, err := range tables.Differing(ctx) {
		switch {
		case err != nil:
			return s, err
		case len(r.Status) > 0 && !slices.Contains(r.Status, f.Status):
		case f.Why != "":
			s.Alone[f.ID] = f.Why
		default:
			s.Found[f.Status]++
			s.orders = append(s.orders, f.ID)
		}
	}
	return s, nil
}

func (s salvaged) report(d cloud.Deployment) error {
	var b strings.Builder
	fmt.Fprintf(&b, "brought back %d of %d orders\n", s.Back, len(s.orders))
	for _, id := range slices.Sorted(maps.Keys(s.Alone)) {
		fmt.Fprintf(&b, "left alone: %s  %s\n", id, s.Alone[id])
	}
	err := d.Result(b.String(), s)
	if len(s.Alone) > 0 {
		err = errors.Join(err, shell.Left("orders that were left alone, look at each: %d", len(s.Alone)))
	}
	return err
}

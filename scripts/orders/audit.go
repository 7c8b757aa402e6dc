package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"orderonce/domain/order"
	"orderonce/scripts/orders/audit"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type auditTable struct {
	From       shell.Moment `default:"26h" placeholder:"T" help:"Start: 2026-11-01, 2026-11-01T08:00:00Z, or how long ago. Default: ${default}."`
	To         shell.Moment `default:"1h" placeholder:"T" help:"End, likewise, not included. Default: ${default}; 0s for orders of the last hour too."`
	Repair     bool         `help:"Afterwards fix what needs no judgement. Prints a plan and asks first. Moves no money."`
	Yes        bool         `help:"Do not ask, for scripts."`
	CSV        string       `name:"csv" placeholder:"FILE" help:"Also write the findings there."`
	HTML       string       `name:"html" placeholder:"FILE" help:"Also write a page with a chart there."`
	Resume     string       `placeholder:"DIR" help:"Continue an interrupted audit. It keeps its period."`
	StripeRate float64      `default:"10" placeholder:"N" help:"Calls to Stripe in a second, at most. Default: ${default}."`
	TableRate  float64      `default:"5" placeholder:"N" help:"Pages of the scan in a second, at most. Each costs 128 read units. Default: ${default}."`
}

var errDiffer = errors.New("orders that differ between the table and Stripe")

// Run audits the table.
func (a auditTable) Run(ctx context.Context, d cloud.Deployment) error {
	d.Where()
	dir, f, err := a.open(d)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	b := d.Books(a.StripeRate, a.TableRate)
	left, err := auditing{
		auditTable: a, Shell: d.Shell, folder: f, repairer: d.Repairer(), stripe: b.Stripe,
		auditor: &audit.Auditor{Books: b, Scope: d.Scope, Now: d.Now, Progress: func(s audit.Summary) {
			d.Progress("%d PaymentIntents, %d rows, %d orders compared", s.Payments.Items, s.Rows.Items, s.Orders)
		}},
	}.run(ctx)
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("audit: %w\ncontinue it: orders audit --resume %s", err, dir), f.Close())
	case left > 0:
		return errors.Join(shell.Left("%w: %d", errDiffer, left), f.Remove())
	}
	return f.Remove()
}

type auditing struct {
	auditTable
	shell.Shell

	auditor  *audit.Auditor
	folder   *audit.Folder
	repairer *audit.Repairer
	stripe   *cloud.Pace
}

// run compares, reports and, if asked to, repairs. It returns how many orders still
// differ.
func (a auditing) run(ctx context.Context) (left int, err error) {
	s, err := a.auditor.Run(ctx, a.folder)
	a.Progress("")
	if err == nil {
		err = a.report(s)
	}
	repaired, risks := 0, map[audit.Risk]int{}
	if err == nil && a.Repair {
		repaired, err = a.repair(ctx, risks)
	}
	if err == nil || errors.Is(err, shell.ErrNotConfirmed) {
		v := s.Verdict(risks)
		if s.Differing > 0 {
			fmt.Fprintln(a.People())
		}
		err = errors.Join(err, a.Result(v.String()+"\n", map[string]audit.Verdict{"verdict": v}))
	}
	return s.Differing - repaired, err
}

// open opens a new work folder, or that of an interrupted audit.
func (a auditTable) open(d cloud.Deployment) (dir string, f *audit.Folder, err error) {
	if a.Resume != "" {
		if f, err = audit.Open(a.Resume, audit.Job{}); err != nil {
			return "", nil, err
		}
		job := d.Job(f.Job().Window)
		if f.Job() != job {
			return "", nil, errors.Join(fmt.Errorf("%w: %+v, want %+v", audit.ErrOtherJob, f.Job(), job), f.Close())
		}
		return a.Resume, f, nil
	}
	w := audit.Window{From: a.From.At(d.Now()), To: a.To.At(d.Now())}
	if !w.From.Before(w.To) {
		err = fmt.Errorf("--from %s is not before --to %s", a.From, a.To)
	}
	if err == nil {
		dir, err = os.MkdirTemp("", "orders-audit-")
	}
	if err == nil {
		f, err = audit.Open(dir, d.Job(w))
	}
	return dir, f, err
}

// shownFindings is how many findings a terminal gets.
const shownFindings = 50

// report prints the summary and the findings, and writes the files.
func (a auditing) report(s audit.Summary) error {
	f := a.folder
	fmt.Fprintln(a.People(), s.Describe(f.Job()))
	n := 0
	for finding, err := range f.Findings() {
		if n++; err == nil && (a.JSON || n <= shownFindings) {
			err = a.Result(finding.String()+"\n", finding)
		}
		if err != nil {
			return err
		}
	}
	more := ""
	if n > shownFindings {
		more = fmt.Sprintf("and %d more: see --csv\n", n-shownFindings)
	}
	return errors.Join(
		a.Result(more, map[string]audit.Summary{"summary": s}),
		write(a.CSV, func(w io.Writer) error { return audit.WriteCSV(w, f.Findings()) }),
		write(a.HTML, func(w io.Writer) error { return audit.WriteHTML(w, f.Job(), s, f.Findings()) }),
	)
}

// write writes a file, or nothing if it has no name.
func write(name string, content func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(filepath.Clean(name))
	if err != nil {
		return err
	}
	return errors.Join(content(file), file.Close())
}

// repair prints the plan, asks, and carries it out. It returns how many orders match
// afterwards, and counts the risks that are gone. An order that cannot be repaired is
// reported and does not stop the others.
func (a auditing) repair(ctx context.Context, gone map[audit.Risk]int) (repaired int, err error) {
	n, err := a.printPlans()
	if err != nil || n == 0 {
		return 0, err
	}
	ask := fmt.Sprintf("Type \"repair\" to repair %d orders. No money moves: ", n)
	if !a.Yes && !a.Confirms(ask, "repair") {
		return 0, shell.ErrNotConfirmed
	}
	for p, err := range a.folder.Plans() {
		for range callsOfARepair {
			err = cmp.Or(err, a.stripe.Wait(ctx, 1))
		}
		if err != nil {
			return repaired, err
		}
		if err := a.repairOne(ctx, p); err != nil {
			fmt.Fprintf(a.People(), "not repaired: %s: %v\n", p.OrderID, err)
			continue
		}
		repaired++
		for _, f := range p.Findings {
			gone[f.Risk]++
		}
		a.Progress("%d of %d repaired", repaired, n)
	}
	a.Progress("")
	fmt.Fprintf(a.People(), "repaired %d of %d orders\n", repaired, n)
	return repaired, nil
}

// callsOfARepair is how many calls to Stripe a repair makes, beside those of the
// comparison after it: two reads of the intent, one of its refunds, one of its disputes.
const callsOfARepair = 4

// printPlans prints what a repair does and returns to how many orders.
func (a auditing) printPlans() (n int, err error) {
	out := a.People()
	fmt.Fprintln(out, "\nplan:")
	for p, err := range a.folder.Plans() {
		if err != nil {
			return 0, err
		}
		if n++; n <= shownFindings {
			fmt.Fprintln(out, p)
		}
	}
	switch {
	case n == 0:
		fmt.Fprintln(out, "nothing can be repaired without judgement")
	case n > shownFindings:
		fmt.Fprintf(out, "and %d more, likewise\n", n-shownFindings)
	}
	return n, nil
}

// repairOne repairs an order and compares it again.
func (a auditing) repairOne(ctx context.Context, p audit.Plan) error {
	if err := a.repairer.Repair(ctx, p); err != nil {
		return err
	}
	result, err := a.auditor.Check(ctx, audit.Order{
		ID: p.OrderID, Payments: []audit.Payment{{Intent: order.Intent{ID: p.Intent, OrderID: p.OrderID}}},
	})
	if err == nil && len(result.Findings) > 0 {
		err = fmt.Errorf("it still differs: %s", result.Findings[0])
	}
	return err
}

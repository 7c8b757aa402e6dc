package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"orderonce/domain/order"
)

// After a kill, at most so many pages are read again, and so many parts joined again.
const (
	savePages = 50
	saveParts = 16
)

// Auditor runs audits.
type Auditor struct {
	Books    Books
	Scope    order.Scope
	Now      func() time.Time
	Progress func(Summary) // called after every page and part
}

// Run runs the audit of a folder, or continues it. It reads Stripe first and the table
// then, joins them order by order, and reads every order again that seems to differ, so
// that a change in between is not a finding. After an error the folder can be continued,
// also if ctx ended.
func (a *Auditor) Run(ctx context.Context, f *Folder) (Summary, error) {
	s := &f.state.Summary
	w := f.state.Job.Window
	ofPayment := func(p Payment) (order.ID, entry) { return p.OrderID, entry{Payment: &p} }
	err := gather(a, f, &s.Payments, a.Books.Payments(ctx, w, false, s.Payments.Next), ofPayment)
	if err == nil {
		err = gather(a, f, &s.Refunds, a.Books.Payments(ctx, w, true, s.Refunds.Next), ofPayment)
	}
	if err == nil {
		rows := a.Books.Rows(ctx, w, s.Rows.Next)
		err = gather(a, f, &s.Rows, rows, func(r Row) (order.ID, entry) { return r.OrderID, entry{Row: &r} })
	}
	if err == nil {
		err = a.joinAll(ctx, f)
	}
	return *s, err
}

func (a *Auditor) joinAll(ctx context.Context, f *Folder) error {
	for f.state.Joined < Parts {
		if err := a.join(ctx, f, f.state.Joined); err != nil {
			return errors.Join(err, f.save())
		}
		a.Progress(f.state.Summary)
		if f.state.Joined%saveParts == 0 {
			if err := f.save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// gather writes the pages of one side to the folder.
func gather[T any](
	a *Auditor, f *Folder, s *Side, pages iter.Seq2[Page[T], error], lineOf func(T) (order.ID, entry),
) error {
	if s.Done {
		return nil
	}
	for page, err := range pages {
		if err != nil {
			return errors.Join(err, f.save())
		}
		for _, item := range page.Items {
			id, line := lineOf(item)
			if err := f.Append(PartOf(id), line); err != nil {
				return err
			}
		}
		s.Next, s.Calls = page.Next, s.Calls+1
		s.Items, s.Skipped = s.Items+len(page.Items), s.Skipped+page.Skipped
		a.Progress(f.state.Summary)
		if page.Next != "" && s.Calls%savePages == 0 { // the last page is saved as Done
			if err := f.save(); err != nil {
				return err
			}
		}
	}
	s.Done = true
	return f.save()
}

// join compares the orders of one part. A part that fails leaves no trace.
func (a *Auditor) join(ctx context.Context, f *Folder, n int) error {
	orders := map[order.ID]Order{}
	for line, err := range Lines[entry](f.Files, n) {
		if err != nil {
			return fmt.Errorf("read part %d: %w", n, err)
		}
		add(orders, line)
	}
	counts, found := f.state.Summary, []Finding(nil)
	counts.Findings, counts.Risks = maps.Clone(counts.Findings), maps.Clone(counts.Risks)
	for _, id := range slices.Sorted(maps.Keys(orders)) {
		o := orders[id]
		if len(o.Payments) == 0 && o.Row.Problem == "" && !f.state.Job.Window.Contains(o.Row.CreatedAt) {
			continue // its intent belongs to another window
		}
		r, err := a.compare(ctx, o)
		if err != nil {
			return fmt.Errorf("compare order %s: %w", id, err)
		}
		counts.count(r)
		found = append(found, r.Findings...)
	}
	for _, finding := range found {
		if err := f.Append(Parts, finding); err != nil {
			return err
		}
	}
	f.state.Summary, f.state.Joined = counts, n+1
	return nil
}

func add(orders map[order.ID]Order, line entry) {
	if r := line.Row; r != nil {
		o := orders[r.OrderID]
		o.ID, o.Row = r.OrderID, r
		orders[r.OrderID] = o
	}
	if p := line.Payment; p != nil {
		o := orders[p.OrderID]
		o.ID = p.OrderID
		o.Payments = slices.DeleteFunc(o.Payments, func(listed Payment) bool { return listed.ID == p.ID })
		o.Payments = append(o.Payments, *p)
		orders[p.OrderID] = o
	}
}

func (s *Summary) count(r Result) {
	s.Orders++
	s.Strays += r.Strays
	switch {
	case r.InProgress:
		s.InProgress++
	case len(r.Findings) == 0:
		s.Matched++
	default:
		s.Differing++
	}
	for _, f := range r.Findings {
		s.Findings[f.Class]++
		if f.Risk != "" {
			s.Risks[f.Risk]++
		}
	}
}

// compare compares an order, and once more as it is now if it seems to differ. The lists
// do not name the refunds, so an order with some is always read.
func (a *Auditor) compare(ctx context.Context, o Order) (Result, error) {
	r := Compare(o, a.Scope, a.Now())
	if len(r.Findings) == 0 && (o.Row == nil || o.Row.Refunded == 0) {
		return r, nil
	}
	return a.Check(ctx, o)
}

// Check compares an order as it is now. Of o it takes the id and which intents there are.
func (a *Auditor) Check(ctx context.Context, o Order) (Result, error) {
	now, err := a.Books.Row(ctx, o.ID)
	switch {
	case errors.Is(err, order.ErrNotFound) && len(o.Payments) == 0:
		return Result{}, nil
	case errors.Is(err, order.ErrNotFound): // an intent never goes back, so the list is enough
		return Compare(Order{ID: o.ID, Payments: o.Payments}, a.Scope, a.Now()), nil
	case err != nil:
		return Result{}, err
	}
	ids := map[order.IntentID]bool{now.Intent: now.Intent != ""}
	for _, p := range o.Payments {
		ids[p.ID] = true
	}
	fresh := Order{ID: o.ID, Row: &now}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if !ids[id] {
			continue
		}
		p, err := a.Books.Payment(ctx, id)
		if errors.Is(err, ErrNoPayment) {
			continue
		}
		if err != nil {
			return Result{}, err
		}
		fresh.Payments = append(fresh.Payments, p)
	}
	return Compare(fresh, a.Scope, a.Now()), nil
}

package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orderonce/adapters/config"
	"orderonce/domain/order"
	"orderonce/scripts/orders/view"
)

// Ask reads what is known about one order. notRead is what could not be read beside the
// row, which is worth showing without it.
func (d Deployment) Ask(ctx context.Context, id order.ID) (f view.Report, notRead, err error) {
	q := question{view.Report{ID: id, Now: d.Now()}, d}
	if err := q.readTable(ctx); err != nil {
		return view.Report{}, nil, err
	}
	notRead = errors.Join(q.readReceipts(ctx), q.readStripe(ctx))
	return q.Report, notRead, nil
}

// question is one about an order, and the answer so far.
type question struct {
	view.Report

	d Deployment
}

// readTable reads the row. A row that is missing is not an error.
func (f *question) readTable(ctx context.Context) error {
	r, err := f.d.Store().Load(ctx, f.ID)
	if errors.Is(err, order.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	f.Record = &r
	if !r.Status.Charged() {
		return nil
	}
	a, err := f.d.Accounts().Load(ctx, f.ID)
	f.Account = &a
	return err
}

// readReceipts reads the receipts of the order, if there is a table of them.
func (f *question) readReceipts(ctx context.Context) (err error) {
	if f.d.ReceiptsTable == "" {
		return nil
	}
	if f.Receipts, err = f.d.Receipts().OfOrder(ctx, f.ID); err != nil {
		return fmt.Errorf("read the receipts of order %q: %w", f.ID, err)
	}
	return nil
}

// readStripe reads every payment of the order at Stripe, if the environment has a key.
func (f *question) readStripe(ctx context.Context) error {
	if f.d.Key.Reveal() == "" {
		return nil
	}
	if err := f.readPayments(ctx); err != nil {
		return fmt.Errorf("read the payments of order %q at Stripe: %w", f.ID, err)
	}
	return nil
}

func (f *question) readPayments(ctx context.Context) (err error) {
	if problems := problemsOf(f.d.Environ, []string{"SCOPE", "STRIPE_SECRET_KEY"}); len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	payments := f.d.Payments()
	if f.Intents, err = payments.Find(ctx, f.ID); err != nil {
		return err
	}
	f.Asked = true
	if f.Record == nil || f.Record.Intent == "" {
		return nil
	}
	bound := f.Record.Intent
	if !slices.ContainsFunc(f.Intents, func(i order.Intent) bool { return i.ID == bound }) {
		i, err := payments.Read(ctx, bound) // the search lags
		if err != nil {
			f.Asked = false
			return err
		}
		f.Intents = append(f.Intents, i)
	}
	if f.Account == nil {
		return nil
	}
	session := f.d.Refunds().Open(ctx)
	defer session.Close()
	f.Ledger, err = session.Read(ctx, bound)
	return err
}

package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orderonce/adapters/config"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/view"
)

// Ask reads what is known about one order: its row, its receipts if there is a table of
// them, and its payments at Stripe if the environment has a key. notRead is what could
// not be read beside the row, which is worth showing without it.
func (d Deployment) Ask(ctx context.Context, id order.ID) (f view.Report, notRead, err error) {
	f = view.Report{ID: id, Now: d.Now(), Scope: d.Scope}
	if err := d.askTable(ctx, &f); err != nil {
		return view.Report{}, nil, err
	}
	if d.ReceiptsTable != "" {
		if f.Receipts, err = d.Receipts().OfOrder(ctx, id); err != nil {
			notRead = fmt.Errorf("read the receipts of order %q: %w", id, err)
		}
	}
	if d.Key.Reveal() != "" {
		if err := d.askStripe(ctx, &f); err != nil {
			notRead = errors.Join(notRead, fmt.Errorf("read the payments of order %q at Stripe: %w", id, err))
		}
	}
	return f, notRead, nil
}

// askTable reads the row. A row that is missing is not an error.
func (d Deployment) askTable(ctx context.Context, f *view.Report) error {
	r, err := d.Store().Load(ctx, f.ID)
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
	a, err := d.Accounts().Load(ctx, f.ID)
	f.Account = &a
	return err
}

// askStripe reads every payment of the order at Stripe, and the refunds of those that
// charged it.
func (d Deployment) askStripe(ctx context.Context, f *view.Report) (err error) {
	if problems := problemsOf(d.Environ, []string{"SCOPE", "STRIPE_SECRET_KEY"}); len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	bound := order.IntentID("")
	if f.Record != nil {
		bound = f.Record.Intent
	}
	if f.Intents, err = d.intents(ctx, f.ID, bound); err != nil {
		return err
	}
	f.Ledgers = map[order.IntentID]refund.Ledger{}
	session := d.Refunds().Open(ctx)
	defer session.Close()
	for _, i := range f.Intents {
		if i.State == order.Succeeded {
			if f.Ledgers[i.ID], err = session.Read(ctx, i.ID); err != nil {
				return err
			}
		}
	}
	f.Asked = true
	return nil
}

// intents returns every payment of an order, the bound one also while the search lags.
func (d Deployment) intents(ctx context.Context, id order.ID, bound order.IntentID) ([]order.Intent, error) {
	payments := d.Payments()
	found, err := payments.Find(ctx, id)
	own := func(i order.Intent) bool { return i.ID == bound }
	if err != nil || bound == "" || slices.ContainsFunc(found, own) {
		return found, err
	}
	i, err := payments.Read(ctx, bound)
	if err != nil {
		return nil, err
	}
	return append(found, i), nil
}

// ErrNoKey means that the environment has no key of Stripe.
var ErrNoKey = errors.New("STRIPE_SECRET_KEY: missing")

// PaymentsOf returns the payments of an order and, if more than one charged it, what went
// back of them. It returns ErrNoKey without a key of Stripe.
func (d Deployment) PaymentsOf(ctx context.Context, a refund.Account) (view.Report, error) {
	if d.Key.Reveal() == "" {
		return view.Report{}, ErrNoKey
	}
	found, err := d.intents(ctx, a.OrderID, a.Intent)
	f := view.Report{ID: a.OrderID, Record: &order.Record{Intent: a.Intent}, Intents: found}
	if err == nil && f.Charges() > 1 { // unless one of them went back
		err = d.askStripe(ctx, &f)
	}
	if err != nil {
		err = fmt.Errorf("read the payments of order %q at Stripe: %w", a.OrderID, err)
	}
	return f, err
}

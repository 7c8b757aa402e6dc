package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orderonce/adapters/config"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/audit"
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
	payments := d.Payments()
	if f.Intents, err = payments.Find(ctx, f.ID); err != nil {
		return err
	}
	if f.Record != nil && f.Record.Intent != "" {
		bound := f.Record.Intent
		if !slices.ContainsFunc(f.Intents, func(i order.Intent) bool { return i.ID == bound }) {
			i, err := payments.Read(ctx, bound) // the search lags
			if err != nil {
				return err
			}
			f.Intents = append(f.Intents, i)
		}
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

// ErrNoKey means that the environment has no key of Stripe.
var ErrNoKey = errors.New("STRIPE_SECRET_KEY: missing")

// Surplus names the payments that charged an order beside its own one, and still hold
// money. It returns ErrNoKey without a key, and an error if the key does not read the
// order's own payment. Stripe's search lags by a minute.
func (d Deployment) Surplus(ctx context.Context, a refund.Account) (ids string, err error) {
	if d.Key.Reveal() == "" {
		return "", ErrNoKey
	}
	if problems := problemsOf(d.Environ, []string{"STRIPE_SECRET_KEY"}); len(problems) > 0 {
		return "", &config.Error{Problems: problems}
	}
	payments := d.Payments()
	found, err := payments.Find(ctx, a.OrderID)
	own := func(i order.Intent) bool { return i.ID == a.Intent }
	if err == nil && !slices.ContainsFunc(found, own) { // the search lags
		_, err = payments.Read(ctx, a.Intent)
	}
	for _, i := range found {
		if err == nil && !own(i) && i.State == order.Succeeded {
			var p audit.Payment
			if p, err = (intents{stripe.New(d.options())}).read(ctx, i.ID); p.Refunded < p.Total.Amount {
				ids += " " + string(i.ID)
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("read the payments of order %q at Stripe: %w", a.OrderID, err)
	}
	return strings.TrimSpace(ids), err
}

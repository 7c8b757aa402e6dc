package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/caarlos0/env/v11"

	"orderonce/adapters/config"
	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/domain/order"
	"orderonce/scripts/orders/view"
)

// Ask reads what is known about one order. notRead is what could not be read beside the
// row, which is worth showing without it.
func Ask(
	ctx context.Context, c ShowEnv, cfg aws.Config, environ []string, id order.ID, now time.Time,
) (f view.Report, notRead, err error) {
	q := question{view.Report{ID: id, Now: now}, c, cfg, environ}
	if err := q.readTable(ctx); err != nil {
		return view.Report{}, nil, err
	}
	notRead = errors.Join(q.readReceipts(ctx), q.readStripe(ctx))
	return q.Report, notRead, nil
}

// question is one about an order, and the answer so far.
type question struct {
	view.Report

	env     ShowEnv
	cfg     aws.Config
	environ []string
}

// readTable reads the row. A row that is missing is not an error.
func (f *question) readTable(ctx context.Context) error {
	r, err := f.env.Orders.Store(f.cfg).Load(ctx, f.ID)
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
	a, err := f.env.Orders.Refunds(f.cfg).Load(ctx, f.ID)
	f.Account = &a
	return err
}

// readReceipts reads the receipts of the order, if there is a table of them.
func (f *question) readReceipts(ctx context.Context) (err error) {
	if f.env.Receipts == "" {
		return nil
	}
	if f.Receipts, err = receipttable.New(f.cfg, f.env.Receipts).OfOrder(ctx, f.ID); err != nil {
		return fmt.Errorf("read the receipts of order %q: %w", f.ID, err)
	}
	return nil
}

// readStripe reads every payment of the order at Stripe, if the environment has a key.
func (f *question) readStripe(ctx context.Context) error {
	if env.ToMap(f.environ)["STRIPE_SECRET_KEY"] == "" {
		return nil
	}
	if err := f.readPayments(ctx); err != nil {
		return fmt.Errorf("read the payments of order %q at Stripe: %w", f.ID, err)
	}
	return nil
}

func (f *question) readPayments(ctx context.Context) error {
	c, err := config.Read[StripeEnv](f.environ)
	if err != nil {
		return err
	}
	payments := c.Payments()
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
	session := c.Refunds().Open(ctx)
	defer session.Close()
	f.Ledger, err = session.Read(ctx, bound)
	return err
}

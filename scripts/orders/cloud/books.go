package cloud

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/dispute"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/domain/settle"
	"orderonce/scripts/orders/audit"
)

// pages are the pages of a list or scan.
type pages[T any] = iter.Seq2[audit.Page[T], error]

// Books reads the table and Stripe for an audit, each at its own rate.
type Books struct {
	deployment    Deployment
	orders        *dynamodb.Store    // one, because its client's budget of retries is that of the audit
	table         *refundtable.Store // over it
	account       intents
	disputes      *dispute.Disputes
	refunds       refund.Provider
	Stripe, scans *Pace
	reads         *Pace // of single rows
}

// readsOfAPage is how many reads of an order cost as much as a page of the scan.
const readsOfAPage = 40

// slowest is one call in 100 seconds.
const slowest = 0.01

// Books returns books that make at most so many calls to Stripe, and read so many
// pages of the table, in a second.
func (d Deployment) Books(stripeRate, tableRate float64) *Books {
	orders := d.Store()
	return &Books{
		deployment: d, orders: orders, table: refundtable.New(orders),
		account: intents{stripe.New(d.options())}, disputes: dispute.New(d.options()), refunds: d.Refunds(),
		Stripe: NewPace(max(stripeRate, slowest)), scans: NewPace(max(tableRate, slowest)),
		reads: NewPace(readsOfAPage * max(tableRate, slowest)),
	}
}

// Payments implements audit.Books, with one call for a hundred.
func (b *Books) Payments(
	ctx context.Context, w audit.Window, refunded bool, after string,
) pages[audit.Payment] {
	list := b.account.page
	if refunded {
		list = b.account.refunds
	}
	return patient(ctx, b.Stripe, after, func(after string) (audit.Page[audit.Payment], error) {
		page, err := list(ctx, w, after)
		all := len(page.Items)
		page.Items = slices.DeleteFunc(page.Items, func(p audit.Payment) bool {
			return p.Scope != b.deployment.Scope || !order.ValidID(string(p.OrderID))
		})
		page.Skipped = all - len(page.Items)
		return page, err
	})
}

// Rows implements audit.Books with one call for 1 MB of the table.
func (b *Books) Rows(ctx context.Context, w audit.Window, after string) pages[audit.Row] {
	return patient(ctx, b.scans, after, func(after string) (page audit.Page[audit.Row], err error) {
		rows, next, err := scan(ctx, b.orders, after)
		page.Next = next
		for _, r := range rows {
			if b.belongs(r, w) {
				page.Items = append(page.Items, row(r))
			} else {
				page.Skipped++
			}
		}
		return page, err
	})
}

// belongs reports whether a PaymentIntent of the window may belong to the row: it was
// created after the row, and binding it changed the row. An unreadable row has no times.
func (b *Books) belongs(r Row, w audit.Window) bool {
	if r.err != nil {
		return true
	}
	return (r.Mode == "" || r.Mode == stripe.ModeOf(b.deployment.Key.Reveal())) &&
		r.CreatedAt.Before(w.To.Add(order.MaxSkew)) && r.UpdatedAt.After(w.From.Add(-order.MaxSkew))
}

// Payment implements audit.Books with one call, another one for a charge of which
// something went back, and one more for a disputed charge.
func (b *Books) Payment(ctx context.Context, id order.IntentID) (audit.Payment, error) {
	if err := b.Stripe.Wait(ctx, 1); err != nil {
		return audit.Payment{}, err
	}
	p, err := b.account.read(ctx, id)
	if failed, ok := errors.AsType[*order.PaymentError](err); ok && failed.Code == "resource_missing" {
		return audit.Payment{}, errors.Join(audit.ErrNoPayment, err)
	}
	if err == nil && p.Refunded > 0 {
		p.Refunds, err = b.refundsOf(ctx, id)
	}
	if err != nil || !p.Disputed {
		return p, err
	}
	if err := b.Stripe.Wait(ctx, 1); err != nil {
		return p, err
	}
	all, err := b.disputes.Disputes(ctx, id)
	for _, d := range all {
		if d.CreatedAt.After(p.Dispute.CreatedAt) {
			p.Dispute = d
		}
	}
	return p, err
}

// refundsOf returns the ids of the refunds that gave something back.
func (b *Books) refundsOf(ctx context.Context, id order.IntentID) (ids []string, err error) {
	if err := b.Stripe.Wait(ctx, 1); err != nil {
		return nil, err
	}
	session := b.refunds.Open(ctx)
	defer session.Close()
	ledger, err := session.Read(ctx, id)
	for _, r := range ledger.Refunds {
		if r.Status.Counts() {
			ids = append(ids, string(r.ID))
		}
	}
	return ids, err
}

// Row implements audit.Books.
func (b *Books) Row(ctx context.Context, id order.ID) (audit.Row, error) {
	if err := b.reads.Wait(ctx, 1); err != nil {
		return audit.Row{}, err
	}
	r := Row{}
	if r.Record, r.err = b.orders.Load(ctx, id); r.err == nil {
		r.Account, r.err = b.table.Load(ctx, id)
	}
	switch {
	case errors.Is(r.err, order.ErrCorrupt), errors.Is(r.err, order.ErrUnknownVersion):
		r.OrderID = id
	case r.err != nil:
		return audit.Row{}, r.err
	}
	return row(r), nil
}

func row(r Row) audit.Row {
	if r.err != nil {
		return audit.Row{OrderID: r.OrderID, Problem: r.err.Error()}
	}
	return audit.NewRow(r.Record, r.Account)
}

// patience is how often in a row a list may fail that Stripe did not answer, or refused
// for its rate limit.
const patience = 6

// patient yields the pages that read returns, each after the position of the one before,
// at a rate, up to one that has no Next. It repeats a call that failed if that is worth
// it.
func patient[T any](
	ctx context.Context, p *Pace, after string, read func(after string) (audit.Page[T], error),
) pages[T] {
	return func(yield func(audit.Page[T], error) bool) {
		for failed := 0; ; {
			var page audit.Page[T]
			err := p.Wait(ctx, 1)
			if err == nil {
				page, err = read(after)
			}
			if err == nil {
				failed, after = 0, page.Next
				if !yield(page, nil) || after == "" {
					return
				}
				continue
			}
			if failed++; failed == patience || !transient(err) || pause(ctx, time.Second<<(failed-1)) != nil {
				yield(audit.Page[T]{}, err)
				return
			}
		}
	}
}

// transient reports whether Stripe may answer the next call.
func transient(err error) bool {
	failed, ok := errors.AsType[*order.PaymentError](err)
	return ok && (failed.Kind == order.KindUnavailable || failed.Kind == order.KindUnknown)
}

// Job returns what an audit of a period compares.
func (d Deployment) Job(w audit.Window) audit.Job {
	return audit.Job{Window: w, Scope: d.Scope, Table: d.Table, Mode: stripe.ModeOf(d.Key.Reveal())}
}

// Repairer returns what repairs rows with the environment's table and key.
func (d Deployment) Repairer() *audit.Repairer {
	return &audit.Repairer{
		Follower: settle.Follower{
			Store: d.Store(), Payments: d.Payments(), Scope: d.Scope, Now: d.Now,
			Disputes: dispute.New(d.options()),
		},
		Refunds: *d.Refresher(),
	}
}

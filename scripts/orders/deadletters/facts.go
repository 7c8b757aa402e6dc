package deadletters

import (
	"context"
	"errors"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Sources are where the facts about a message come from. They only read.
type Sources struct {
	Orders   order.Store
	Accounts refund.Store
	Payments order.Payments
	Refunds  refund.Provider
	Scope    order.Scope
}

// Facts are what the row and Stripe say about what a message asks for.
type Facts struct {
	Row    order.Record // of an order; zero if RowErr is set
	RowErr error        // order.ErrNotFound, order.ErrCorrupt, order.ErrUnknownVersion or another one
	// Intents is the bound intent or, if there is none, what Stripe's search finds: a row
	// that was lost or restored from a backup names no intent that was charged.
	Intents   []order.Intent
	StripeErr error // also an intent that belongs to something else: *order.MismatchError

	Account refund.Account  // of a refund's order; zero if RowErr is set
	Made    []refund.Refund // at Stripe for an open or unknown refund's id
}

// Facts reads the facts about a message. Stripe is asked only where the row does not say
// whether money moved. An error is one of the facts.
func (s Sources) Facts(ctx context.Context, m Message) Facts {
	switch {
	case m.Invalid != nil && m.named.OrderID == "":
		return Facts{}
	case m.Invalid != nil:
		row, err := s.Orders.Load(ctx, m.named.OrderID)
		return Facts{Row: row, RowErr: err}
	case m.Job.IsRefund():
		return s.ofRefund(ctx, m.Job.Refund)
	}
	return s.ofOrder(ctx, m)
}

func (s Sources) ofOrder(ctx context.Context, m Message) (f Facts) {
	id := m.Job.Order.ID()
	f.Row, f.RowErr = s.Orders.Load(ctx, id)
	settled := f.Row.Status.Charged() || f.Row.Status == order.Canceled
	switch {
	case settled, f.RowErr != nil && !errors.Is(f.RowErr, order.ErrNotFound):
	case f.Row.Intent == "":
		f.Intents, f.StripeErr = s.Payments.Find(ctx, id)
	default:
		f.Intents, f.StripeErr = s.read(ctx, f.Row)
	}
	return f
}

func (s Sources) read(ctx context.Context, r order.Record) ([]order.Intent, error) {
	i, err := s.Payments.Read(ctx, r.Intent)
	if err == nil {
		err = order.Verify(i, s.Scope, r.OrderID, r.Total)
	}
	if err != nil {
		return nil, err
	}
	return []order.Intent{i}, nil
}

func (s Sources) ofRefund(ctx context.Context, r refund.Request) (f Facts) {
	f.Account, f.RowErr = s.Accounts.Load(ctx, r.OrderID())
	i, _ := f.Account.Item(r.ID())
	if f.RowErr != nil || i.Status != refund.Open && i.Status != refund.Unknown {
		return f
	}
	session := s.Refunds.Open(ctx)
	defer session.Close()
	ledger, err := session.Read(ctx, f.Account.Intent)
	if err != nil {
		f.StripeErr = err
		return f
	}
	for _, made := range ledger.Refunds {
		if made.OrderID == r.OrderID() && made.For == r.ID() && made.Scope == s.Scope {
			f.Made = append(f.Made, made)
		}
	}
	return f
}

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type listRefunds struct{}

// Run prints the refunds that only a person can end.
func (l listRefunds) Run(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.Open(ctx, sh, "ORDERS_TABLE")
	if err != nil {
		return err
	}
	var corrupt []error
	n := 0
	for a, err := range waitingAccounts(ctx, d) {
		switch {
		case err != nil && a.OrderID == "":
			return err
		case err != nil:
			corrupt = append(corrupt, fmt.Errorf("order %q: %w", a.OrderID, err))
		}
		for _, i := range a.Items {
			if i.Status != refund.Unknown && !i.Abandoned(d.Now()) {
				continue
			}
			n++
			if err := sh.Result(view.WaitingRefund(a, i), view.NewWaitingRefundJSON(a, i)); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(sh.People(), "refunds that wait for a person: %d\n", n)
	if n > 0 {
		corrupt = append(corrupt, shell.Left("%d refunds may have been made: see orders refund resolve --help", n))
	}
	return errors.Join(corrupt...)
}

// waitingAccounts reads the accounts of the index, one by one. Of one that cannot be
// decoded it yields the id and the error.
func waitingAccounts(ctx context.Context, d cloud.Deployment) iter.Seq2[refund.Account, error] {
	return func(yield func(refund.Account, error) bool) {
		accounts := d.Accounts()
		for id, err := range d.Store().Due(ctx, cloud.LastDue()) {
			if err != nil {
				yield(refund.Account{}, err)
				return
			}
			a, err := accounts.Load(ctx, id)
			if errors.Is(err, order.ErrNotFound) { // erased since
				continue
			}
			a.OrderID = id
			if !yield(a, err) {
				return
			}
		}
	}
}

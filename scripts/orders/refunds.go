package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type listRefunds struct{}

// Run prints the refunds that only a person can end, of the orders in the index. An order
// that cannot be decoded is named, and hides no other.
func (listRefunds) Run(ctx context.Context, d cloud.Deployment) error {
	var problems []error
	n := 0
	for id, err := range d.Store().Due(ctx, cloud.LastDue()) {
		if err != nil {
			return err
		}
		a, err := d.Accounts().Load(ctx, id)
		if err != nil && !errors.Is(err, order.ErrNotFound) { // erased since
			problems = append(problems, err)
		}
		var text strings.Builder
		for _, i := range a.Items {
			if i.Status == refund.Unknown || i.Abandoned(d.Now()) {
				n++
				text.WriteString(view.WaitingRefund(a, i))
			}
		}
		if text.Len() > 0 {
			problems = append(problems, d.Result(text.String(), view.NewAccountJSON(a)))
		}
	}
	fmt.Fprintf(d.People(), "refunds that wait for a person: %d\n", n)
	if err := errors.Join(problems...); err != nil || n == 0 {
		return err
	}
	return shell.Left("%d refunds may have been made: see orders refund resolve --help", n)
}

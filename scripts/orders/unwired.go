package main

import (
	"context"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// unwired stands for the table and Stripe until both have refunds.
type unwired struct {
	refund.Records
	refund.Provider
}

// Account implements refund.Records: no order has a refund.
func (unwired) Account(_ context.Context, id order.ID) (refund.Account, error) {
	return refund.Account{OrderID: id}, nil
}

func (tableConfig) refunds() refund.Records { return unwired{} } //nolint:ireturn // until it is wired

func (stripeConfig) refundProvider() refund.Provider { return unwired{} } //nolint:ireturn // until it is wired

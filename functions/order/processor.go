package main

import (
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func newProcessor(c environment, claims order.Claims, payments order.Payments) *order.Processor {
	return &order.Processor{
		Claims: claims, Payments: payments,
		Scope: c.Scope.Order(), Now: time.Now, ConfirmTime: c.budget().ConfirmTime(),
	}
}

// newRefunds returns the processor of refunds. The same steps follow Create as follow
// Confirm, so it needs the same time.
func newRefunds(c environment, claims refund.Claims, provider refund.Provider) *refund.Processor {
	return &refund.Processor{
		Claims: claims, Provider: provider,
		Scope: c.Scope.Order(), Now: time.Now, CreateTime: c.budget().ConfirmTime(),
	}
}

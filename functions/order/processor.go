package main

import (
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func newProcessor(c environment, clients config.Clients, key string, claims order.Claims) *order.Processor {
	return &order.Processor{
		Claims: claims, Payments: stripe.New(c.Stripe.Options(key, c.Scope, clients)),
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

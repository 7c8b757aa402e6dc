package main

import (
	"time"

	"orderonce/domain/order"
	"orderonce/functions/internal/consumer"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	setup.Environment

	Table  string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Stock  string `env:"STOCK_TABLE"           want:"the name of the stock table, or nothing"`
	Queue  consumer.Queue
	Stripe provider.Stripe
	Budget time.Duration `env:"ORDER_BUDGET" envDefault:"10s"`
}

// Problems returns what is wrong with several variables together.
func (c environment) Problems() []string {
	return append(c.Stripe.Problems(), c.Queue.Problems(c.Budget, c.Stripe.Timeout)...)
}

func newProcessor(c environment, store order.Store, payments order.Payments) *order.Processor {
	return &order.Processor{
		Store: store, Payments: payments, TracksStock: c.Stock != "", Scope: c.Scope.Order(), Now: time.Now,
		ConfirmTime: c.Queue.Budget(c.Budget, c.Stripe.Timeout).ConfirmTime(),
	}
}

package main

import (
	"time"

	"orderonce/functions/internal/consumer"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	setup.Environment

	Table  string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Queue  consumer.Queue
	Stripe provider.Stripe
	Budget time.Duration `env:"ORDER_BUDGET" envDefault:"10s"`
}

// Problems returns what is wrong with several variables together.
func (c environment) Problems() []string {
	return append(c.Stripe.Problems(), c.Queue.Problems(c.Budget, c.Stripe.Timeout)...)
}

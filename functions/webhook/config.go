package main

import (
	"orderonce/adapters/config"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	setup.Environment

	Table   string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Stock   string `env:"STOCK_TABLE"           want:"the name of the stock table, or nothing"`
	Stripe  provider.Stripe
	Secret  provider.ARN  `env:"WEBHOOK_SECRET_ARN" want:"the ARN of a secret"`
	Secrets config.Secret `env:"WEBHOOK_SECRETS"`
}

// Problems returns what is wrong with several variables together.
func (c environment) Problems() []string {
	problems := c.Stripe.Problems()
	if (c.Secret.Reveal() == "") == (c.Secrets.Reveal() == "") {
		problems = append(problems, "WEBHOOK_SECRET_ARN, WEBHOOK_SECRETS: want exactly one of them")
	}
	return problems
}

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

	Table  string `env:"RECEIPTS_TABLE,notEmpty" want:"the name of the receipts table"`
	Queue  consumer.Queue
	Stripe provider.Stripe
	Budget time.Duration `env:"ORDER_BUDGET" envDefault:"20s"`

	From             string        `env:"RECEIPT_FROM,notEmpty"              want:"the sender, such as \"Shop <receipts@shop.example>\""`
	ConfigurationSet string        `env:"RECEIPT_CONFIGURATION_SET,notEmpty" want:"the name of a configuration set of SES"`
	Promise          promise       `env:"RECEIPTS"                           envDefault:"at_most_once" want:"at_most_once or at_least_once"`
	SESTimeout       time.Duration `env:"SES_TIMEOUT"                        envDefault:"5s"`
}

// promise is what happens to a send whose result is unknown.
type promise string

const (
	atMostOnce  promise = "at_most_once"
	atLeastOnce promise = "at_least_once"
)

// Problems returns what is wrong with several variables together, or with a value that
// has the right type.
func (c environment) Problems() []string {
	problems := append(c.Stripe.Problems(), c.Queue.Problems(c.Budget, c.Stripe.Timeout+c.SESTimeout)...)
	if c.Promise != atMostOnce && c.Promise != atLeastOnce {
		problems = append(problems, "RECEIPTS: want at_most_once or at_least_once")
	}
	if c.SESTimeout <= 0 {
		problems = append(problems, "SES_TIMEOUT: want more than 0")
	}
	return problems
}

// sendTime is the time that one request to SES, the write after it and the response to
// the queue need. Stripe's call comes before.
func (c environment) sendTime() time.Duration {
	return c.Queue.Budget(c.Budget-c.Stripe.Timeout, c.SESTimeout).ConfirmTime()
}

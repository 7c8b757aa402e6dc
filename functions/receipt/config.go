package main

import (
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	AWS config.AWS

	Table       string      `env:"RECEIPTS_TABLE,notEmpty"        want:"the name of the receipts table"`
	Queue       config.URL  `env:"QUEUE_URL,notEmpty"             want:"the URL of the receipt queue"`
	DeadLetters config.URL  `env:"DEAD_LETTER_QUEUE_URL,notEmpty" want:"the URL of its dead-letter queue"`
	Scope       setup.Scope `env:"SCOPE,notEmpty"                 want:"1 to 32 lower-case letters, digits or '-', the first a letter"`
	Stripe      setup.Stripe

	From             string        `env:"RECEIPT_FROM,notEmpty"              want:"the sender, such as \"Shop <receipts@shop.example>\""`
	ConfigurationSet string        `env:"RECEIPT_CONFIGURATION_SET,notEmpty" want:"the name of a configuration set of SES"`
	Promise          promise       `env:"RECEIPTS"                           envDefault:"at_most_once" want:"at_most_once or at_least_once"`
	SESTimeout       time.Duration `env:"SES_TIMEOUT"                        envDefault:"5s"`

	OrderBudget time.Duration `env:"ORDER_BUDGET"    envDefault:"20s"`
	AnswerTime  time.Duration `env:"ANSWER_TIME"     envDefault:"3s"`
	FirstDelay  time.Duration `env:"FIRST_DELAY"     envDefault:"5s"`
	Retention   time.Duration `env:"QUEUE_RETENTION" envDefault:"168h"`
	Parallel    int           `env:"PARALLEL_ORDERS" envDefault:"10"`
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
	problems := c.Stripe.Problems()
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	check(c.Queue != c.DeadLetters,
		"QUEUE_URL, DEAD_LETTER_QUEUE_URL: want two queues, or parked messages would be received again")
	check(c.Promise == atMostOnce || c.Promise == atLeastOnce, "RECEIPTS: want at_most_once or at_least_once")
	check(c.Parallel >= 1, "PARALLEL_ORDERS: want at least 1")
	check(c.SESTimeout > 0, "SES_TIMEOUT: want more than 0")
	check(c.Stripe.Timeout+c.SESTimeout < c.OrderBudget,
		"STRIPE_TIMEOUT, SES_TIMEOUT, ORDER_BUDGET: want time-outs below the budget together, or no receipt would be sent")
	check(c.AnswerTime > 0, "ANSWER_TIME: want more than 0")
	check(c.OrderBudget+c.AnswerTime < order.MaxLease,
		"ORDER_BUDGET, ANSWER_TIME: want less than "+order.MaxLease.String()+" together, or no receipt would begin")
	longest := c.policy().LongestDelay
	check(c.FirstDelay > 0 && c.FirstDelay <= longest,
		"FIRST_DELAY: want more than 0 and at most "+longest.String())
	check(c.Retention > 24*time.Hour,
		"QUEUE_RETENTION: want more than 24h, because messages are parked a day before it ends")
	return problems
}

// policy returns when a message is redelivered or parked.
func (c environment) policy() sqs.Policy {
	p := sqs.DefaultPolicy()
	p.FirstDelay, p.Retention = c.FirstDelay, c.Retention
	return p
}

// sendTime is the time that one request to SES, the write after it and the response to
// the queue need. Stripe's call comes before.
func (c environment) sendTime() time.Duration {
	return order.Budget{
		Order: c.OrderBudget - c.Stripe.Timeout, Provider: c.SESTimeout,
		Write: config.AWSResponseTimeout, Response: c.AnswerTime,
	}.ConfirmTime()
}

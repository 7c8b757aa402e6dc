package main

import (
	"strings"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	AWS config.AWS

	Table       string      `env:"ORDERS_TABLE,notEmpty"          want:"the name of the orders table"`
	Stock       string      `env:"STOCK_TABLE"                    want:"the name of the stock table, or nothing"`
	Queue       config.URL  `env:"QUEUE_URL,notEmpty"             want:"the URL of the order queue"`
	DeadLetters config.URL  `env:"DEAD_LETTER_QUEUE_URL,notEmpty" want:"the URL of the dead-letter queue"`
	Scope       setup.Scope `env:"SCOPE,notEmpty"                 want:"1 to 32 lower-case letters, digits or '-', the first a letter"`
	Stripe      setup.Stripe

	OrderBudget time.Duration `env:"ORDER_BUDGET"    envDefault:"10s"`
	AnswerTime  time.Duration `env:"ANSWER_TIME"     envDefault:"3s"`
	FirstDelay  time.Duration `env:"FIRST_DELAY"     envDefault:"5s"`
	Retention   time.Duration `env:"QUEUE_RETENTION" envDefault:"168h"`
	Parallel    int           `env:"PARALLEL_ORDERS" envDefault:"10"`
}

// Problems returns what is wrong with several variables together, or with a value that
// has the right type.
func (c environment) Problems() []string {
	problems := c.Stripe.Problems()
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	queue, deadLetters := string(c.Queue), string(c.DeadLetters)
	check(queue != deadLetters,
		"QUEUE_URL, DEAD_LETTER_QUEUE_URL: want two queues, or parked messages would be received again")
	check(strings.HasSuffix(queue, fifoSuffix) == strings.HasSuffix(deadLetters, fifoSuffix),
		"QUEUE_URL, DEAD_LETTER_QUEUE_URL: want two FIFO queues or two standard queues")
	check(c.Parallel >= 1, "PARALLEL_ORDERS: want at least 1")
	check(
		c.Stripe.Timeout < c.OrderBudget,
		"STRIPE_TIMEOUT, ORDER_BUDGET: want a time-out below the budget, or no order would be confirmed",
	)
	check(c.AnswerTime > 0, "ANSWER_TIME: want more than 0")
	check(c.OrderBudget+c.AnswerTime < order.MaxLease,
		"ORDER_BUDGET, ANSWER_TIME: want less than "+order.MaxLease.String()+" together, or no order would begin")
	longest := c.policy().LongestDelay
	check(
		c.FirstDelay > 0 && c.FirstDelay <= longest, "FIRST_DELAY: want more than 0 and at most "+longest.String(),
	)
	check(c.Retention > 24*time.Hour,
		"QUEUE_RETENTION: want more than 24h, because orders are parked a day before it ends")
	return problems
}

// fifoSuffix ends the names of FIFO queues, and of no others (SQS developer guide, "FIFO
// queue and message identifiers").
const fifoSuffix = ".fifo"

// policy returns when a message is redelivered or parked.
func (c environment) policy() sqs.Policy {
	p := sqs.DefaultPolicy()
	p.FirstDelay, p.Retention = c.FirstDelay, c.Retention
	return p
}

// budget returns how an order's time is spent. A write to the table gets the time of one
// attempt.
func (c environment) budget() order.Budget {
	return order.Budget{
		Order: c.OrderBudget, Provider: c.Stripe.Timeout, Write: config.AWSResponseTimeout, Response: c.AnswerTime,
	}
}

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

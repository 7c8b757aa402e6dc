package main

import (
	"context"
	"time"

	"orderonce/adapters/config"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	setup.Environment

	Table    string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Stock    string `env:"STOCK_TABLE"           want:"the name of the stock table, or nothing"`
	Stripe   provider.Stripe
	Hold     time.Duration `env:"STOCK_HOLD" envDefault:"24h"`
	Parallel int           `env:"PARALLEL_ORDERS" envDefault:"10"`
	Rate     int           `env:"STRIPE_RATE"     envDefault:"10"`
}

// Problems returns what is wrong with several variables together.
func (c environment) Problems() []string {
	problems := c.Stripe.Problems()
	if c.Parallel < 1 {
		problems = append(problems, "PARALLEL_ORDERS: want at least 1")
	}
	if c.Hold <= 0 {
		problems = append(problems, "STOCK_HOLD: want more than 0")
	}
	if c.Rate < 1 || c.Rate > 1000 {
		problems = append(problems, "STRIPE_RATE: want 1 to 1000 calls a second")
	}
	return problems
}

// parallel is how many orders are rechecked at once: at most as many as there are calls
// in a second, so that no call waits for longer than a second for its turn.
func (c environment) parallel() int { return min(c.Parallel, c.Rate) }

// callTime is the time that a call to Stripe may take, with the wait for its turn.
func (c environment) callTime() time.Duration { return time.Second + c.Stripe.Timeout }

// margin is the time that the last orders need. A recheck of an order with refunds makes
// two calls to Stripe, of the charge and of the refunds, and four to the table.
func (c environment) margin() time.Duration { return 2*c.callTime() + 4*config.AWSResponseTimeout }

// freeTime is the time that freeing the stock of an order may take: what is left of the
// margin after a recheck, which makes one call to Stripe and two to the table.
func (c environment) freeTime() time.Duration {
	return c.margin() - c.callTime() - 2*config.AWSResponseTimeout
}

// perSecond returns a function that lets n calls a second pass.
func perSecond(n int) func(context.Context) error {
	tick := time.NewTicker(time.Second / time.Duration(n))
	return func(ctx context.Context) error {
		select {
		case <-tick.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

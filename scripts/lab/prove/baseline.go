package main

import (
	"context"
	"strconv"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// searchBaseline runs a baseline in random worlds until one breaks the invariant. The
// worlds lack what only the product's table can have, and Stripe keeps its documented
// promises.
func searchBaseline(b baselines.Baseline, invariant stage.Invariant, worlds int) simulation.Report {
	return simulation.Draw{Seed: 1, Worlds: worlds, Only: invariant, Change: func(c *world.Case) {
		c.People, c.Mistake, c.Releases, c.Adapter = false, false, false, false
		c.Webhooks, c.Reconcile, c.Publish = false, false, false
		c.Clocks, c.KeyLife, c.Batch = nil, 0, 0
		c.Consumer = func() world.Consumer { return &consumer{Baseline: b, table: baselines.Map{}} }
	}}.Run(nil)
}

// consumer is a baseline with its table, as the simulation's Consumer.
type consumer struct {
	baselines.Baseline

	table baselines.Map
	keys  int
}

// Consume implements world.Consumer. Each call to the table or to Stripe is a step.
func (c *consumer) Consume(w *world.Worker, messageID, body string) error {
	c.table.Expire(w.Now()) // as early as DynamoDB may; baselines_test covers late deletion
	stripe := baselines.NewStripe(baselines.StripeOptions{
		Key: "sk_test_pretend", BaseURL: "http://stripe.test", Transport: w,
		NewKey: func() string { c.keys++; return "random-" + strconv.Itoa(c.keys) },
	})
	return c.Handle(context.Background(), baselines.Env{
		Table: baselines.Stepped{Table: c.table, Step: w.Table}, Stripe: stripe,
		Now: w.Now, Deadline: w.Now().Add(time.Minute), // the function's timeout, as the product's
	}, baselines.Message{ID: messageID, Body: body})
}

// Done implements world.Consumer: it reports whether the baseline's row says that the
// order is paid.
func (c *consumer) Done(id order.ID) bool {
	s, err := baselines.StatusOf(context.Background(), c.table, string(id))
	return err == nil && s == baselines.Paid
}

package main

import (
	"context"
	"strconv"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/report"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// searchBaseline runs a baseline in random worlds until one breaks the invariant, or any
// invariant if it is "".
func searchBaseline(b baselines.Baseline, invariant stage.Invariant, worlds int) report.Report {
	draw := simulation.Draw{
		Seed: 1, Worlds: worlds, Only: invariant, Change: func(c *world.Case) { *c = baselineCase(b, *c) },
	}
	return draw.Run(nil)
}

// baselineCase removes from a case what only the product's table can have. Stripe keeps
// its documented promises.
func baselineCase(b baselines.Baseline, c world.Case) world.Case {
	c.People, c.Mistake, c.Releases, c.Adapter = false, false, false, false
	c.Webhooks, c.Reconcile, c.Publish = false, false, false
	c.Clocks, c.KeyLife, c.Batch = nil, 0, 0
	c.Consumer = func() world.Consumer { return &consumer{Baseline: b} }
	return c
}

// consumer is a baseline with its table, as the simulation's Consumer.
type consumer struct {
	baselines.Baseline

	table baselines.Map
	keys  int
}

// functionTimeout is the same as the product's.
const functionTimeout = time.Minute

// Consume implements world.Consumer.
func (c *consumer) Consume(w *world.Worker, messageID, body string) error {
	c.table.Expire(w.Now()) // as early as DynamoDB may; baselines_test covers late deletion
	stripe := baselines.NewStripe(baselines.StripeOptions{
		Key: "sk_test_pretend", BaseURL: "http://stripe.test", Transport: w,
		NewKey: func() string { c.keys++; return "random-" + strconv.Itoa(c.keys) },
	})
	env := baselines.Env{
		Table: workerTable{w, &c.table}, Stripe: stripe, Now: w.Now, Deadline: w.Now().Add(functionTimeout),
	}
	return c.Handle(context.Background(), env, baselines.Message{ID: messageID, Body: body})
}

// Done implements world.Consumer: it reports whether the baseline's row says that
// the order is paid.
func (c *consumer) Done(id order.ID) bool {
	s, err := baselines.StatusOf(context.Background(), &c.table, string(id))
	return err == nil && s == baselines.Paid
}

// workerTable makes each call of a worker to its table a step of the simulation.
type workerTable struct {
	*world.Worker

	of *baselines.Map
}

var _ baselines.Table = workerTable{}

func (t workerTable) Get(ctx context.Context, id string) (got baselines.Item, err error) {
	err = t.Table("get "+id, func() error {
		got, err = t.of.Get(ctx, id)
		return err
	})
	return got, err
}

func (t workerTable) Put(ctx context.Context, item baselines.Item) error {
	return t.Table("put "+itemID(item), func() error { return t.of.Put(ctx, item) })
}

func (t workerTable) PutIf(ctx context.Context, item baselines.Item, c baselines.Condition) error {
	return t.Table("conditional put "+itemID(item), func() error { return t.of.PutIf(ctx, item, c) })
}

func (t workerTable) Delete(ctx context.Context, id string) error {
	return t.Table("delete "+id, func() error { return t.of.Delete(ctx, id) })
}

func itemID(item baselines.Item) string {
	id, _ := item[baselines.ID].(baselines.S)
	return string(id)
}

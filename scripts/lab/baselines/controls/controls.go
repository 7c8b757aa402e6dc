// Package controls puts the designs that people copy into the worlds of package prove, where each call to their table and to
// Stripe is a step. A search that finds nothing in them would show that it cannot see. It refuses to know how they work.
package controls

import (
	"context"
	"strconv"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/simulation"
)

// Find draws worlds in which the design runs, until one breaks the promise, or any promise if it is "".
func Find(d baselines.Design, promise simulation.Invariant, worlds int) simulation.Report {
	return simulation.Draw{Seed: 1, Worlds: worlds, Only: promise, Change: func(c *simulation.Case) { *c = world(d, *c) }}.Run(nil)
}

// world leaves out of a drawn case what only our own table can have. Stripe keeps its documented promises.
func world(d baselines.Design, c simulation.Case) simulation.Case {
	c.People, c.Mistake, c.Releases, c.Adapter = false, false, false, false
	c.Clocks, c.KeyLife, c.Batch, c.ListLag = nil, 0, 0, d.ListLag
	c.Consumer = func() simulation.Consumer { return &consumer{Design: d} }
	return c
}

// consumer is a design with its table.
type consumer struct {
	baselines.Design

	table baselines.Map
	keys  int
}

// functionTime is the design's time-out, as that of the product.
const functionTime = time.Minute

// Consume handles one delivery.
func (c *consumer) Consume(k *simulation.Worker, messageID, body string) error {
	c.table.Expire(k.Now()) // at the latest; a condition that compares the expiry does not notice
	stripe := baselines.NewStripe(baselines.StripeOptions{
		Key: "sk_test_pretend", BaseURL: "http://stripe.test", Transport: k,
		NewKey: func() string { c.keys++; return "drawn-" + strconv.Itoa(c.keys) },
	})
	env := baselines.Env{Table: table{k, &c.table}, Stripe: stripe, Now: k.Now, Deadline: k.Now().Add(functionTime)}
	return c.Handle(context.Background(), env, baselines.Message{ID: messageID, Body: body})
}

// Done reports whether the design's row says that the order is paid.
func (c *consumer) Done(id order.ID) bool {
	s, err := baselines.StatusOf(context.Background(), &c.table, string(id))
	return err == nil && s == baselines.Paid
}

// table is the design's table as one worker reaches it.
type table struct {
	*simulation.Worker

	of *baselines.Map
}

var _ baselines.Table = table{}

func (t table) Get(ctx context.Context, id string) (got baselines.Item, err error) {
	err = t.Table("get "+id, func() error {
		got, err = t.of.Get(ctx, id)
		return err
	})
	return got, err
}

func (t table) Put(ctx context.Context, item baselines.Item) error {
	return t.Table("put "+idOf(item), func() error { return t.of.Put(ctx, item) })
}

func (t table) PutIf(ctx context.Context, item baselines.Item, c baselines.Condition) error {
	return t.Table("put "+idOf(item)+" if it may", func() error { return t.of.PutIf(ctx, item, c) })
}

func (t table) Delete(ctx context.Context, id string) error {
	return t.Table("delete "+id, func() error { return t.of.Delete(ctx, id) })
}

func idOf(item baselines.Item) string {
	id, _ := item[baselines.ID].(baselines.S)
	return string(id)
}

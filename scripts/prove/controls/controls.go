// Package controls puts the designs that people copy into the worlds of package prove, where each call to their table and to
// Stripe is a step. A search that finds nothing in them would show that it cannot see. It refuses to know how they work.
package controls

import (
	"context"
	"strconv"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/designs"
	"orderonce/scripts/prove"
)

// Find draws worlds in which the design runs, until one breaks the promise, or any promise if it is "".
func Find(d designs.Design, promise prove.Invariant, worlds int) prove.Report {
	return prove.Draw{Seed: 1, Worlds: worlds, Only: promise, Change: func(c *prove.Case) { *c = world(d, *c) }}.Run(nil)
}

// world leaves out of a drawn case what only our own table can have. Stripe keeps its documented promises.
func world(d designs.Design, c prove.Case) prove.Case {
	c.People, c.Mistake, c.Releases, c.Adapter = false, false, false, false
	c.Clocks, c.KeyLife, c.Batch, c.ListLag = nil, 0, 0, d.ListLag
	c.Consumer = func() prove.Consumer { return &consumer{Design: d} }
	return c
}

// consumer is a design with its table.
type consumer struct {
	designs.Design

	table designs.Map
	keys  int
}

// functionTime is the design's time-out, as that of the product.
const functionTime = time.Minute

// Consume handles one delivery.
func (c *consumer) Consume(k *prove.Worker, messageID, body string) error {
	c.table.Expire(k.Now()) // at the latest; a condition that compares the expiry does not notice
	stripe := designs.NewStripe(designs.StripeOptions{
		Key: "sk_test_pretend", BaseURL: "http://stripe.test", Transport: k,
		NewKey: func() string { c.keys++; return "drawn-" + strconv.Itoa(c.keys) },
	})
	env := designs.Env{Table: table{k, &c.table}, Stripe: stripe, Now: k.Now, Deadline: k.Now().Add(functionTime)}
	return c.Handle(context.Background(), env, designs.Message{ID: messageID, Body: body})
}

// Done reports whether the design's row says that the order is paid.
func (c *consumer) Done(id order.ID) bool {
	s, err := designs.StatusOf(context.Background(), &c.table, string(id))
	return err == nil && s == designs.Paid
}

// table is the design's table as one worker reaches it.
type table struct {
	*prove.Worker

	of *designs.Map
}

var _ designs.Table = table{}

func (t table) Get(ctx context.Context, id string) (got designs.Item, err error) {
	err = t.Table("get "+id, func() error {
		got, err = t.of.Get(ctx, id)
		return err
	})
	return got, err
}

func (t table) Put(ctx context.Context, item designs.Item) error {
	return t.Table("put "+idOf(item), func() error { return t.of.Put(ctx, item) })
}

func (t table) PutIf(ctx context.Context, item designs.Item, c designs.Condition) error {
	return t.Table("put "+idOf(item)+" if it may", func() error { return t.of.PutIf(ctx, item, c) })
}

func (t table) Delete(ctx context.Context, id string) error {
	return t.Table("delete "+id, func() error { return t.of.Delete(ctx, id) })
}

func idOf(item designs.Item) string {
	id, _ := item[designs.ID].(designs.S)
	return string(id)
}

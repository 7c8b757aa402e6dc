package refunds

import (
	"context"
	"strconv"
	"time"

	"orderonce/scripts/lab/stage"
)

// Complete is a case of which every schedule with few faults is searched. All that may
// happen in the worst worlds may happen in it.
type Complete struct {
	Name string
	Case Case
}

// Every returns the cases. Their order is charged 39.98 USD.
func Every() []Complete {
	const whole, big, small = int64(3998), int64(2000), int64(1999)
	paid := Order{ID: "ORD-1", Amount: whole, Currency: "usd"}
	late, declined := paid, paid
	late.Late, declined.Late, declined.Declined = true, true, true
	of := func(o Order, amounts ...int64) Case { // each under an id of its own
		c := Case{Class: Worst, Complete: true, Orders: []Order{o}, Faults: create.faults()}
		for kind := range c.Trouble {
			c.Trouble[kind] = true
		}
		for n, amount := range amounts {
			c.Messages = append(c.Messages, newRequest(o, "R"+strconv.Itoa(n+1), amount))
		}
		return c
	}
	with := func(c Case, change func(c *Case)) Case { change(&c); return c }
	again := func(c Case, amount int64) Case {
		c.Messages = append(c.Messages, newRequest(paid, "R1", amount))
		return c
	}
	return []Complete{
		{"a big refund", of(paid, big)},
		{"a small refund", of(paid, small)},
		{"a big refund without keys", with(of(paid, big), func(c *Case) { c.Class = Keyless })},
		{"a refund that is pending first", with(of(paid, small), func(c *Case) { c.Takes = true })},
		{"a small refund and a list that lags", with(of(paid, small), func(c *Case) { c.Lag = 14 * time.Hour })},
		{"a small refund and keys that keep refusals", with(of(paid, small), func(c *Case) { c.Keeps = true })},
		{"a refund of an order that is not charged yet", of(late, small)},
		{"a refund of an order whose card is declined", of(declined, small)},
		{"a big refund, sent twice", again(of(paid, big), big)},
		{"a small refund, sent twice", again(of(paid, small), small)},
		{"two contents under one id", again(of(paid, small), big)},
		{"two small refunds", of(paid, small, small)},
		{"two refunds of more than the charge", of(paid, big, big)},
	}
}

// Search runs every schedule of the case with at most this many faults, up to the first
// that breaks an invariant.
func (c Complete) Search(ctx context.Context, most int) stage.Report {
	s := c.Case.scenario(nil, func(*World) {})
	s.Name = c.Name
	return s.Search(ctx, most)
}

// SearchEvery searches every case at the same time.
func SearchEvery(ctx context.Context, most int) []stage.Report {
	cases := Every()
	reports := make([]stage.Report, len(cases))
	stage.Parallel(len(cases), stage.NewPool, func(_ *stage.Pool, i int) {
		reports[i] = cases[i].Search(ctx, most)
	})
	return reports
}

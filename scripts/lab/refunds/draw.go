package refunds

import (
	"math/rand/v2"
	"strconv"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/lab/stage"
)

func fromSeed(seed uint64, class Class) (Case, stage.Choose) {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: it must be repeatable
	c := drawCase(r, class)
	c.Keeps = seed%2 == 0
	return c, stage.Random(r, 0.03, 0.1, 0.2, 0.4, 0.6)
}

func drawCase(r *rand.Rand, class Class) Case {
	if class == Aged {
		return drawAged(r)
	}
	c := Case{Class: class, Takes: oneIn(r, 4)}
	if class != Kind {
		c.Lag = []time.Duration{0, time.Minute, 14 * time.Hour}[r.IntN(3)]
	}
	for kind := range c.Trouble {
		c.Trouble[kind] = deviation(kind) == fails || !oneIn(r, 3)
	}
	for _, f := range create.faults() { // it has all of them
		if oneIn(r, 2) {
			c.Faults = append(c.Faults, f)
		}
	}
	for n := range []int{1, 1, 1, 1, 1, 1, 2, 3}[r.IntN(8)] {
		o := Order{
			ID: order.ID("ORD-" + strconv.Itoa(n+1)), Currency: []string{"usd", "eur", "jpy"}[r.IntN(3)],
			Amount: []int64{3998, 5001, 5000}[r.IntN(3)], Declined: oneIn(r, 32), Late: oneIn(r, 4),
		}
		c.Orders = append(c.Orders, o)
		c.Messages = append(c.Messages, drawMessages(r, o, class)...)
	}
	r.Shuffle(len(c.Messages), func(i, j int) { c.Messages[i], c.Messages[j] = c.Messages[j], c.Messages[i] })
	return c
}

// drawAged returns an order with one refund of at most half of its charge, and perhaps
// another one. The answers to its requests are often lost.
func drawAged(r *rand.Rand) Case {
	c := Case{Class: Aged, Lag: []time.Duration{0, 14 * time.Hour}[r.IntN(2)]}
	for kind := range c.Trouble {
		c.Trouble[kind] = deviation(kind) == fails || oneIn(r, 3)
	}
	c.Faults = []stage.Fault{stage.Lost, stage.Unanswered, failure, stage.DiesAfter, diesSending}
	if oneIn(r, 2) {
		c.Faults = c.Faults[:2]
	}
	o := Order{ID: "ORD-1", Currency: "usd", Amount: 3998}
	amounts := []int64{o.Amount / 2, o.Amount / 3}
	c.Orders = []Order{o}
	for n := range 1 + r.IntN(2) {
		c.Messages = append(c.Messages, newRequest(o, "R"+strconv.Itoa(n+1), amounts[r.IntN(len(amounts))]))
	}
	return c
}

// drawMessages returns one to four refunds of an order. Each is sent up to three times,
// sometimes with another content.
func drawMessages(r *rand.Rand, o Order, class Class) (all []refund.Request) {
	half := o.Amount / 2
	amounts := []int64{o.Amount, half + 1}
	if class != Keyless {
		amounts = append(amounts, half, half, o.Amount/3)
	}
	for n := range []int{1, 1, 2, 2, 2, 3, 4}[r.IntN(7)] {
		id := "R" + strconv.Itoa(n+1)
		m := newRequest(o, id, amounts[r.IntN(len(amounts))])
		for range []int{1, 1, 2, 3}[r.IntN(4)] {
			all = append(all, m)
			if oneIn(r, 16) {
				all = append(all, newRequest(o, id, amounts[r.IntN(len(amounts))]))
			}
		}
	}
	return all
}

func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

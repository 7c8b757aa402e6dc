package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// Drawn returns the random world of a seed: its case and its choices.
func Drawn(seed uint64) (world.Case, stage.Choose) {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: it must be repeatable
	c := drawCase(r)
	drawActors(&c, rand.New(rand.NewPCG(seed, actors))) //nolint:gosec // G404: it must be repeatable
	c.Name = "seed " + strconv.FormatUint(seed, 10)
	return c, stage.Random(r, 0.02, 0.05, 0.1, 0.2, 0.4)
}

func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func drawCase(r *rand.Rand) world.Case {
	c := world.Case{
		Messages: drawMessages(r), Workers: 1 + r.IntN(4), Rare: true, Adversarial: true,
		People: oneIn(r, 2), Mistake: oneIn(r, 16), Releases: oneIn(r, 6), Adapter: oneIn(r, 16),
		Neighbor: oneIn(r, 16), Denials: oneIn(r, 8), Variety: r.IntN(1000),
		KeyLife: []time.Duration{0, 0, time.Minute, -1}[r.IntN(4)],
	}
	if oneIn(r, 4) {
		c.Clocks = wrongClocks()
	}
	if oneIn(r, 16) {
		c.Receives = 3
	}
	if oneIn(r, 32) {
		c.Batch, c.Adapter, c.FIFO = 1+r.IntN(4), true, oneIn(r, 2)
		if oneIn(r, 2) {
			m := poison(c.Messages[0].Customer)
			c.Messages = slices.Insert(c.Messages, r.IntN(len(c.Messages)+1), m)
		}
	}
	return c
}

// actors is the stream of random numbers that decides who acts beside the workers. It has
// one of its own, so that a seed has the same case otherwise as before there were any.
const actors = 2

// drawActors adds webhooks, the reconciler and publications to one world in ten, and
// operators who cancel orders to one in eight.
func drawActors(c *world.Case, r *rand.Rand) {
	if oneIn(r, 10) {
		c.Webhooks, c.Reconcile, c.Publish = oneIn(r, 2), true, oneIn(r, 2)
	}
	c.Cancels = oneIn(r, 8)
}

// poison returns a message that is not an order.
func poison(customer string) world.Message {
	return world.Message{ID: "POISON", Customer: customer, Poison: `{"orderId":`}
}

// drawMessages returns one to three orders, sometimes ten. Each is sent up to three
// times, sometimes with another content.
func drawMessages(r *rand.Rand) (all []world.Message) {
	n, fields := 1+r.IntN(3), world.Fields()
	if oneIn(r, 100) {
		n = 10
	}
	methods := []string{
		world.Visa, world.Visa, world.Visa, world.Visa,
		world.Declined, world.NeedsAuth, world.TakesDays, world.NoSuchCard,
	}
	for i := range n {
		m := contentOf(r.IntN(baskets), order.ID("ORD-"+strconv.Itoa(i+1)), methods[r.IntN(len(methods))])
		all = append(all, m)
		for range r.IntN(9) / 4 {
			again := m
			if oneIn(r, 3) {
				again = m.With(fields[r.IntN(len(fields))])
			}
			all = append(all, again)
		}
	}
	return all
}

// baskets is the number of contents: few, so that a lab decodes each body once, and more
// than there are currencies, customers, payers and lines.
const baskets = 56

// contentOf returns an order with the nth content. There are so few customers that some
// orders share one, and with it a FIFO group.
func contentOf(n int, id order.ID, method string) world.Message {
	//nolint:gosec // G115, G404: not negative, and repeatable
	r := rand.New(rand.NewPCG(uint64(n%baskets), 1))
	prices := world.Prices()
	p := prices[n%len(prices)]
	m := world.Message{
		ID: id, Currency: p.Currency, Method: method,
		Customer: "CUST-" + strconv.Itoa(1+r.IntN(2)), Payer: "cus_" + strconv.Itoa(1+r.IntN(3)),
	}
	for i := range 1 + r.IntN(world.MaxLines) {
		sku := []string{"MUG", "TSHIRT-M", "CAP"}[i] //nolint:gosec // G602: MaxLines is 3
		quantity, price := int64(1+r.IntN(3)), p.Amount+int64(100*r.IntN(20))
		m.Lines[i] = world.SKU{SKU: sku, Quantity: quantity, Price: price}
	}
	return m
}

// block is how many random worlds are one piece of work.
const block = 1000

// Draw is a range of random worlds.
type Draw struct {
	Seed   uint64 // of the first one
	Worlds int
	Change func(*world.Case) // changes each case; nil changes nothing
}

// Run runs the worlds, and stops early when an invariant is broken. One world of each
// thousand runs twice, because the same seed must give the same history.
func (d Draw) Run(progress func(done int)) Report {
	var found atomic.Int64 // the first block with a violation so far; earlier blocks continue
	found.Store(math.MaxInt64)
	return inParallel((d.Worlds+block-1)/block, func(done int) {
		if progress != nil {
			progress(min(done*block, d.Worlds))
		}
	}, func(l *world.Lab, i int) (r Report) {
		first := d.Seed + uint64(i)*block                    //nolint:gosec // G115: not negative
		last := first + uint64(min(block, d.Worlds-i*block)) //nolint:gosec // G115: not negative
		for s := first; s < last && r.Worst == nil && int64(i) <= found.Load(); s++ {
			r.Worst = d.runOne(l, s, s == first, &r)
		}
		for was := found.Load(); r.Worst != nil && int64(i) < was; was = found.Load() {
			found.CompareAndSwap(was, int64(i))
		}
		return r
	})
}

func (d Draw) runOne(l *world.Lab, seed uint64, twice bool, r *Report) *Finding {
	w := d.world(l, seed)
	broken := w.Run()
	r.Tally.Add(w.Tally())
	r.Drawn++
	if twice {
		second := d.world(l, seed)
		second.Run()
		if second.Trace() != w.Trace() {
			broken = &stage.Violation{
				Invariant: oracle.SameHistory, Order: string(w.Case().Messages[0].ID),
				Detail: "two runs of one seed differ",
			}
		}
	}
	if broken == nil {
		return nil
	}
	f := Shortest(w.Case(), w.Tape(), *broken)
	f.Seeded = true
	f.Replay, f.After = strconv.FormatUint(seed, 10), int(seed-d.Seed)+1 //nolint:gosec // G115: small enough
	return &f
}

func (d Draw) world(l *world.Lab, seed uint64) *world.World {
	c, choose := Drawn(seed)
	if d.Change != nil {
		d.Change(&c)
	}
	return l.NewWorld(c, choose)
}

// mostBytes is how many bytes are a schedule.
const mostBytes = 300

// Bytes returns the case and the schedule of some bytes: the first ones draw the case,
// the others are the schedule.
func Bytes(b []byte) (world.Case, stage.Tape) {
	var seed uint64
	for _, x := range b[:min(len(b), 3)] {
		seed = seed<<8 | uint64(x)
	}
	c, _ := Drawn(seed)
	return c, b[min(len(b), 3):min(len(b), mostBytes)]
}

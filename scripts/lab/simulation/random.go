package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/schedule"
)

// mostSteps is how long a drawn world may be disturbed; then everything is as usual.
const mostSteps = 300

// Drawn is the world that a seed stands for: its case, and who chooses in it.
func Drawn(seed uint64) (Case, schedule.Choose) {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: to be repeated
	c := draw(r)
	c.Name = "seed " + strconv.FormatUint(seed, 10)
	often := []float64{0.02, 0.05, 0.1, 0.2, 0.4}[r.IntN(5)]
	left, steps := 1+r.IntN(12), 0
	return c, func(n int) int {
		steps++
		if n < 2 || left == 0 || steps > mostSteps || r.Float64() >= often {
			return 0
		}
		left--
		return 1 + r.IntN(n-1)
	}
}

// one in n.
func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func draw(r *rand.Rand) Case {
	c := Case{
		Messages: drawMessages(r), Workers: 1 + r.IntN(4), Rare: true, Restless: true,
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
			poison := Message{ID: "POISON", Customer: c.Messages[0].Customer, Poison: `{"orderId":`}
			c.Messages = slices.Insert(c.Messages, r.IntN(len(c.Messages)+1), poison)
		}
	}
	return c
}

// drawMessages are of one to three orders, and now and then of ten; each order sent up to
// three times, perhaps with another content under the same id.
func drawMessages(r *rand.Rand) (all []Message) {
	n := 1 + r.IntN(3)
	if oneIn(r, 100) {
		n = 10
	}
	methods := []string{visa, visa, visa, visa, declined, wantsMe, takesDays, noSuchCard}
	for i := range n {
		m := contentOf(r.IntN(baskets), order.ID("ORD-"+strconv.Itoa(i+1)), methods[r.IntN(len(methods))])
		all = append(all, m)
		for range r.IntN(9) / 4 {
			again := m
			if oneIn(r, 3) {
				again = m.but(fields()[r.IntN(len(fields()))])
			}
			all = append(all, again)
		}
	}
	return all
}

// baskets is how many contents there are to draw from. Few enough that a lab decodes each
// body once, and more than there are currencies, customers, payers and lines.
const baskets = 56

// contentOf returns an order with the nth content: who buys what in which currency at
// which prices, and who pays. Few enough customers that some orders share one, and with
// it a FIFO group.
func contentOf(n int, id order.ID, method string) Message {
	//nolint:gosec // G115, G404: not negative, and to be repeated
	r := rand.New(rand.NewPCG(uint64(n%baskets), 1))
	p := prices()[n%len(prices())]
	m := Message{
		ID: id, Currency: p.currency, Method: method,
		Customer: "CUST-" + strconv.Itoa(1+r.IntN(2)), Payer: "cus_" + strconv.Itoa(1+r.IntN(3)),
	}
	for i := range 1 + r.IntN(maxLines) {
		sku := []string{"MUG", "TSHIRT-M", "CAP"}[i] //nolint:gosec // G602: maxLines is 3
		m.Lines[i] = Article{SKU: sku, Quantity: int64(1 + r.IntN(3)), Price: p.amount + int64(100*r.IntN(20))}
	}
	return m
}

// block is how many worlds are one piece of work.
const block = 1000

// Draw says which worlds to draw.
type Draw struct {
	Seed   uint64 // the first one's
	Worlds int
	Change func(*Case) // what is other than drawn; nil is nothing
	Only   Invariant   // the only promise that counts; "" is each
}

// Run draws the worlds, and stops early when one broke a promise. One world of each
// thousand runs twice: the same seed has to give the same history.
func (d Draw) Run(progress func(done int)) Report {
	var found atomic.Int64 // the first block in which a promise was broken, so far: the ones before it go on
	found.Store(math.MaxInt64)
	return inParallel((d.Worlds+block-1)/block, func(done int) {
		if progress != nil {
			progress(min(done*block, d.Worlds))
		}
	}, func(l *Lab, i int) (r Report) {
		first := d.Seed + uint64(i)*block                    //nolint:gosec // G115: not negative
		last := first + uint64(min(block, d.Worlds-i*block)) //nolint:gosec // G115: not negative
		for s := first; s < last && r.Worst == nil && int64(i) <= found.Load(); s++ {
			r.Worst = d.one(l, s, s == first, &r)
		}
		for was := found.Load(); r.Worst != nil && int64(i) < was; was = found.Load() {
			found.CompareAndSwap(was, int64(i))
		}
		return r
	})
}

func (d Draw) one(l *Lab, seed uint64, again bool, r *Report) *Finding {
	w := d.world(l, seed)
	broken := w.Run()
	r.Tally.add(w.tally())
	r.Drawn++
	if again {
		second := d.world(l, seed)
		second.Run()
		if second.Trace() != w.Trace() {
			broken = &Violation{SameHistory, w.Messages[0].ID, "two runs of one seed differ"}
		}
	}
	if broken == nil || d.Only != "" && broken.Invariant != d.Only {
		return nil
	}
	f := l.Shortest(w.Case, w.tape, *broken)
	f.seeded = true
	f.Replay, f.After = strconv.FormatUint(seed, 10), int(seed-d.Seed)+1 //nolint:gosec // G115: not so many
	return &f
}

func (d Draw) world(l *Lab, seed uint64) *World {
	c, choose := Drawn(seed)
	if d.Change != nil {
		d.Change(&c)
	}
	return l.World(c, choose)
}

func (l *Lab) draw(seed uint64) *World {
	c, choose := Drawn(seed)
	return l.World(c, choose)
}

// Replay plays a seed once more, and tells the shortest story that it can find in it; nil
// if no promise is broken.
func (l *Lab) Replay(seed uint64) (History, *Finding) {
	w := l.draw(seed).Tell()
	broken := w.Run()
	if broken == nil {
		return w.History(), nil
	}
	f := l.Shortest(w.Case, w.tape, *broken)
	f.Replay = strconv.FormatUint(seed, 10)
	return w.History(), &f
}

// Shortest shrinks a story: its choices, the messages that it does not need, and what is
// unusual about its world.
func (l *Lab) Shortest(c Case, t schedule.Tape, v Violation) Finding {
	bad := func(c Case, t schedule.Tape) bool {
		broken := l.World(c, t.Chooser()).Run()
		return broken != nil && broken.Invariant == v.Invariant
	}
	shrunk := func(c Case, t schedule.Tape) schedule.Tape {
		return schedule.Shrink(t, func(t schedule.Tape) bool { return bad(c, t) })
	}
	t = shrunk(c, t)
	for again := true; again; {
		again = false
		for _, simpler := range slices.Concat(c.fewer(), c.plainer()) {
			if tape, is := l.retell(simpler, c, t, v); is {
				c, t, again = simpler, shrunk(simpler, tape), true
				break
			}
		}
	}
	f := l.find(c, t, v, "")
	f.Case.Name = "shrunk from " + strings.TrimPrefix(c.Name, "shrunk from ")
	if broken := l.World(c, t.Chooser()).Run(); broken != nil {
		f.Violation = *broken
	}
	return f
}

// retell looks for a schedule of a simpler case that breaks the same promise.
func (l *Lab) retell(simpler, c Case, t schedule.Tape, v Violation) (schedule.Tape, bool) {
	is := func(broken *Violation) bool { return broken != nil && broken.Invariant == v.Invariant }
	if is(l.World(simpler, t.Chooser()).Run()) {
		return t, true
	}
	for _, cues := range retold(l.cues(c, t)) {
		if tape, broken := l.perform(simpler, cues); is(broken) {
			return tape, true
		}
	}
	return nil, false
}

// Bytes reads a world out of bytes: the first ones draw its case, the others are its
// schedule.
func Bytes(b []byte) (Case, schedule.Tape) {
	var seed uint64
	for _, x := range b[:min(len(b), 3)] {
		seed = seed<<8 | uint64(x)
	}
	c, _ := Drawn(seed)
	return c, b[min(len(b), 3):min(len(b), mostSteps)]
}

// FromBytes is the world that some bytes stand for.
func (l *Lab) FromBytes(b []byte) *World {
	c, tape := Bytes(b)
	return l.World(c, tape.Chooser())
}

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// What an order costs in write units, which a test compares with docs/reference/row.md;
// limits that no setting changes; and assumed latencies. A batch takes batchSeconds.
const (
	beginUnits  = 1 // of the table
	bindUnits   = 1
	finishUnits = 4 // two items in a transaction
	entryUnits  = 1 // of the index: Begin writes the entry, and Finish removes it
	moveUnits   = 2 // a takeover moves it to another dueAt
	stockUnits  = 2 // of a SKU's item: in the transaction of Begin, and in that of Finish

	keyUnits     = 1000 // write units a second of a partition, and so of one key
	batch        = 10
	dynamoMS     = 10  // a write
	stripeMS     = 700 // a call, up to 50 more or less
	batchSeconds = 1.43
	unlimited    = 1 << 30
)

// setup is what is sent, configured and granted.
type setup struct {
	Rate        int           `help:"Simulate one setup: so many orders are sent each second."`
	For         time.Duration `default:"10m" help:"How long they are sent."`
	Concurrency int           `default:"2" help:"maximum_concurrency; 0: as the mapping scales by itself."`
	Pollers     int           `help:"Maximum of provisioned pollers, of which up to 200 are there at once; 0: none."`
	Account     int           `default:"1000" help:"Concurrent executions of the AWS account."`
	Stripe      int           `default:"25" help:"Requests a second of each endpoint, and four times as many in all."`
	Warm        int           `default:"4000" help:"Write units a second that the table and the index bear at first."`
	Quota       int           `default:"40000" help:"Write units a second that each of them may grow to."`
	InFlight    int           `default:"120000" help:"Messages that the queue lets be in flight."`
	Shards      int           `default:"16" help:"Shards of the index."`
	HotSKU      bool          `name:"hot-sku" help:"Each order reserves one unit of the same SKU."`
}

// bucket is a token bucket that holds what it gets in a second. Tokens are thousandths of
// a unit, so that a run is the same on every machine.
type bucket struct {
	wall             string // what refuses orders, or lets them wait
	rate, tokens, at int64
}

func full(name string, rate int) bucket {
	return bucket{wall: name, rate: int64(rate), tokens: 1000 * int64(rate)}
}

// demand is what each order of a call takes of a bucket.
type demand struct {
	of    *bucket
	units int
}

// capacity is what a table or an index bears: in all, and of each key.
type capacity struct {
	all     bucket
	keys    []bucket
	used    int64   // in this minute
	minutes []int64 // units a second in each minute
}

// grow lets it bear twice what any minute had that is half an hour ago.
func (c *capacity) grow(quota int) {
	c.minutes, c.used = append(c.minutes, c.used/60), 0
	if n := len(c.minutes) - 30; n >= 0 {
		c.all.rate = max(c.all.rate, min(int64(quota), 2*c.minutes[n]))
	}
}

// stage is a call of the product, or what a batch waits for.
type stage uint8

const (
	begin stage = iota + 1
	takeover
	prepare
	bind
	read
	confirm
	finish
	appear // its visibility timeout ends
)

// call is what a stage takes: write units for each order, or a request to an endpoint.
type call struct {
	table, index, stock int
	endpoint            *bucket
	then                stage
}

// job is a batch of up to ten orders. They share a shard, a partition and a fate.
type job struct {
	sent, due     int64 // sent: the first of them
	orders        int
	hash, shard   uint32
	receives      int
	tries         uint8 // of its next write
	next, reached stage // reached: the furthest that succeeded
}

// horizon is how far ahead the calendar has a slot for each millisecond.
const horizon = 1 << 16

// system is one simulated deployment. Its clock is a count of milliseconds.
type system struct {
	setup
	now  int64
	draw *rand.Rand

	calendar [horizon][]*job // by the time of the next step
	returned []*job          // visible again
	taken    int             // orders that were received once
	running  int             // invocations
	most     int             // of them
	inFlight int
	settled  int

	calls                                [appear]call
	table, index                         capacity
	sku, stripe, create, confirms, reads bucket
	refused                              map[string]int // orders, in this second
	seconds                              map[string]int // in which it refused a twentieth of what was settled
	report                               report
}

func newSystem(s setup, seed uint64) *system {
	x := &system{
		setup: s, draw: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // G404: a simulation
		table: capacity{all: full("table", s.Warm)},
		index: capacity{all: full("index", s.Warm)},
		sku:   full("SKU", keyUnits), stripe: full("Stripe", 4*s.Stripe), create: full("Stripe", s.Stripe),
		confirms: full("Stripe", s.Stripe), reads: full("Stripe", s.Stripe),
		refused: map[string]int{}, seconds: map[string]int{}, report: report{times: make([]int, s.For/tenth+1)},
	}
	x.index.keys = slices.Repeat([]bucket{full("shards", keyUnits)}, s.Shards)
	x.calls = [...]call{
		begin:    {table: beginUnits, index: entryUnits, stock: stockUnits, then: prepare},
		takeover: {table: 2 * beginUnits, index: moveUnits, then: prepare}, // its first write is refused
		prepare:  {endpoint: &x.create, then: bind},
		bind:     {table: bindUnits, then: confirm},
		read:     {endpoint: &x.reads, then: confirm},
		confirm:  {endpoint: &x.confirms, then: finish},
		finish:   {table: finishUnits, index: entryUnits, stock: stockUnits},
	}
	return x
}

func (x *system) run() report {
	x.most, _ = x.concurrency()
	for ; x.now < x.For.Milliseconds(); x.now++ {
		due := &x.calendar[x.now%horizon]
		for _, j := range *due {
			if j.due > x.now {
				x.schedule(j, j.due-x.now)
			} else {
				x.step(j)
			}
		}
		*due = (*due)[:0]
		if x.receive(); x.now%1000 == 999 {
			x.second()
		}
	}
	return x.report
}

func (x *system) schedule(j *job, wait int64) {
	j.due = x.now + wait
	slot := &x.calendar[(x.now+min(wait, horizon-1))%horizon]
	*slot = append(*slot, j)
}

func (x *system) sent() int { return int(int64(x.Rate) * x.now / 1000) }

// concurrency returns how many invocations may run, and what forbids more.
func (x *system) concurrency() (least int, wall string) {
	seconds := int(x.now / 1000)
	most := map[string]int{"account": x.Account, "environments": 1000 + 100*seconds}
	if x.Pollers > 0 {
		most["pollers"], most["pollers scale"] = 10*x.Pollers, 10*min(x.Pollers, 200)+seconds*1000/60
	} else {
		most["mapping"], most["mapping scales"] = 1250, 5+seconds*300/60
		most["maximum_concurrency"] = cmp.Or(x.Concurrency, unlimited)
	}
	for _, w := range slices.Sorted(maps.Keys(most)) {
		if wall == "" || most[w] < least {
			least, wall = most[w], w
		}
	}
	return least, wall
}

// receive starts invocations. SQS returns any of the visible messages, so that one which
// came back has the chance of every other.
func (x *system) receive() {
	for ; x.running < x.most && x.inFlight+batch <= x.InFlight; x.running++ {
		fresh, back := x.sent()-x.taken, batch*len(x.returned)
		var j *job
		switch {
		case fresh+back == 0:
			return
		case x.draw.IntN(fresh+back) < back:
			n, last := x.draw.IntN(len(x.returned)), len(x.returned)-1
			j, x.returned[n] = x.returned[n], x.returned[last]
			x.returned = x.returned[:last]
		default:
			id := order.ID("ORD-" + strconv.Itoa(x.taken))
			j = &job{
				sent: int64(x.taken) * 1000 / int64(x.Rate), orders: min(fresh, batch), hash: x.draw.Uint32(),
				shard: dynamodb.ShardOf(id, uint32(x.Shards)), //nolint:gosec // G115: a few hundred
			}
			x.taken += j.orders
		}
		if j.next = begin; j.reached > 0 {
			j.next = takeover
		}
		j.receives++
		x.inFlight += j.orders
		x.schedule(j, 1+x.draw.Int64N(dynamoMS))
	}
}

// take takes what a call needs of every bucket, or nothing, and returns which refused. A
// bucket gives as long as it has anything, so that no large call waits forever.
func (x *system) take(j *job, all ...demand) string {
	for _, d := range all {
		b := d.of
		b.tokens, b.at = min(1000*b.rate, b.tokens+b.rate*(x.now-b.at)), x.now
		if d.units > 0 && b.tokens <= 0 {
			x.refused[b.wall] += j.orders
			return b.wall
		}
	}
	for _, d := range all {
		d.of.tokens -= 1000 * int64(d.units*j.orders)
	}
	return ""
}

// write makes a write of each order, of its entry in the index, and of its stock.
func (x *system) write(j *job, table, index, stock int) string {
	t := &x.table
	for len(t.keys) < int(t.all.rate)/keyUnits {
		t.keys = append(t.keys, full("table", keyUnits)) // a partition
	}
	if !x.HotSKU {
		stock = 0
	}
	w := x.take(j, demand{&t.all, table}, demand{&t.keys[int(j.hash)%len(t.keys)], table},
		demand{&x.index.all, index}, demand{&x.index.keys[j.shard], index}, demand{&x.sku, stock})
	if w == "" {
		t.used += int64(table * j.orders)
		x.index.used += int64(index * j.orders)
	}
	return w
}

// step makes the next call of a batch. A write that was refused is tried five times, as
// retry.go of the adapter says; a call to Stripe is not repeated.
func (x *system) step(j *job) {
	if j.next == appear {
		x.inFlight -= j.orders
		x.returned = append(x.returned, j)
		return
	}
	c, refused, wait := &x.calls[j.next], "", int64(dynamoMS)
	if c.endpoint == nil {
		refused = x.write(j, c.table, c.index, c.stock)
	} else {
		refused, wait = x.take(j, demand{&x.stripe, 1}, demand{c.endpoint, 1}), stripeMS-50+x.draw.Int64N(101)
	}
	switch {
	case refused == "" && j.next == finish:
		x.running--
		x.inFlight -= j.orders
		x.settled += j.orders
		x.report.times[(x.now-j.sent)/tenth.Milliseconds()] += j.orders
	case refused == "":
		was := j.next
		j.reached, j.next, j.tries = max(j.reached, was), c.then, 0
		if was == takeover && j.reached >= bind {
			j.next = read
		} else if was == read && j.reached >= confirm {
			j.next = finish
		}
		x.schedule(j, wait)
	case c.endpoint == nil && j.tries < 4:
		x.schedule(j, 1+x.draw.Int64N(50<<j.tries))
		j.tries++
	default:
		x.giveBack(j)
	}
}

// giveBack releases the claim and hides the messages, for as long as the product says.
func (x *system) giveBack(j *job) {
	if j.next > takeover {
		_ = x.write(j, 1, 0, 0) // a release that is refused is not repeated
	}
	action := sqs.Decide(order.Result{Verdict: order.Redeliver, Transient: true},
		sqs.Delivery{Count: j.receives, SentAt: time.UnixMilli(j.sent)}, time.UnixMilli(x.now),
		x.draw.Float64(), sqs.DefaultPolicy())
	x.running--
	j.next, j.tries = appear, 0
	x.schedule(j, action.Delay.Milliseconds())
}

const tenth = 100 * time.Millisecond

type report struct {
	times   []int // orders by the tenths of a second from sent to settled
	settled []int // orders until the end of each second
	waiting int   // the most that were sent and not settled
	walls   []string
}

// rate returns the orders a second of the last fifth.
func (r *report) rate() float64 {
	n := len(r.settled)
	return float64(r.settled[n-1]-r.settled[n-n/5-1]) / float64(n/5)
}

// within returns the time within which a share of the settled orders were settled.
func (r *report) within(share float64) time.Duration {
	sum, all := 0, r.settled[len(r.settled)-1]
	for n, orders := range r.times {
		if sum += orders; float64(sum) >= share*float64(all) {
			return time.Duration(n+1) * tenth
		}
	}
	return 0
}

// second notes which walls were reached in this second, and lets tables grow.
func (x *system) second() {
	r, done, waiting := &x.report, x.settled, x.sent()-x.settled
	if n := len(r.settled); n > 0 {
		done -= r.settled[n-1]
	}
	r.settled, r.waiting = append(r.settled, x.settled), max(r.waiting, waiting)
	most, w := x.concurrency()
	if x.running >= x.most && waiting > x.Rate+x.inFlight {
		x.refused[w] += x.Rate
	}
	x.most = most
	if x.inFlight+batch > x.InFlight {
		x.refused["in flight"] += x.Rate
	}
	for _, w := range slices.Sorted(maps.Keys(x.refused)) {
		if 20*x.refused[w] < done {
			continue
		}
		if x.seconds[w]++; x.seconds[w] == 3 {
			r.walls = append(r.walls, fmt.Sprintf("%s %d:%02d", w, x.now/60_000, x.now/1000%60))
		}
	}
	clear(x.refused)
	if x.now%60_000 == 59_999 {
		x.table.grow(x.Quota)
		x.index.grow(x.Quota)
	}
}

// arithmetic returns how many orders a second a setup settles at its end, if each wall is
// what a division says and nothing is wasted.
func (s *setup) arithmetic() float64 {
	x := system{setup: *s, now: s.For.Milliseconds()}
	invocations, _ := x.concurrency()
	least := min(
		float64(s.Rate), float64(s.Stripe), batch*float64(invocations)/batchSeconds,
		float64(s.InFlight)/batchSeconds, float64(s.Warm)/(beginUnits+bindUnits+finishUnits),
		float64(s.Shards)*keyUnits/(2*entryUnits),
	)
	if s.HotSKU {
		return min(least, keyUnits/(2*stockUnits))
	}
	return least
}

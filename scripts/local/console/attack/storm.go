package attack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/system"
)

// Rate is how many orders a storm posts in a minute.
const Rate = 1000

// profileTime is how long the same things go wrong.
const profileTime = 3 * time.Second

// storm is a running storm. The desk's mutex guards it.
type storm struct {
	seed   uint64
	orders *rand.Rand // draws the orders, and nothing else
	faults *rand.Rand // draws what goes wrong, one after the other
	hits   *rand.Rand // draws which calls and messages are hit, in the order in which they come
	posted int
	now    profile
	until  time.Time // of what goes wrong now
	stop   context.CancelFunc
}

func newStorm(seed uint64, stop context.CancelFunc) *storm {
	dice := func(stream uint64) *rand.Rand {
		return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // G404: not a secret
	}
	return &storm{seed: seed, orders: dice(0), faults: dice(1), hits: dice(2), stop: stop}
}

// profile is what goes wrong for some seconds: a share of the calls fails in one of these
// ways.
type profile struct {
	text   string
	share  float64
	stripe []stripetest.FaultKind
	table  []dynamodbtest.Kind
}

// profiles are the faults of a storm. The calm ones let the queue become short again.
func profiles() []profile {
	return []profile{
		{text: ""},
		{text: ""},
		{text: "Stripe loses requests and answers", share: 0.15, stripe: []stripetest.FaultKind{
			stripetest.LoseRequest, stripetest.LoseResponse,
		}},
		{text: "Stripe answers with errors", share: 0.2, stripe: []stripetest.FaultKind{
			stripetest.ServerErrorBeforeEffect, stripetest.ServerErrorAfterEffect, stripetest.Unavailable,
			stripetest.RateLimited,
		}},
		{text: "DynamoDB loses requests and answers", share: 0.1, table: []dynamodbtest.Kind{
			dynamodbtest.LoseBefore, dynamodbtest.LoseAfter,
		}},
		{text: "DynamoDB throttles and fails", share: 0.2, table: []dynamodbtest.Kind{
			dynamodbtest.ThroughputExceeded, dynamodbtest.Throttled, dynamodbtest.InternalError,
			dynamodbtest.InternalErrorAfter,
		}},
	}
}

// Storm implements console.Actions. A storm attacks at random. The same seed makes the
// same orders and the same sequence of faults; which calls they hit depends on the
// machine.
func (d *Desk) Storm(_ context.Context, on bool, seed uint64) (console.Result, error) {
	if on {
		return d.startStorm(seed)
	}
	return d.stopStorm()
}

func (d *Desk) startStorm(seed uint64) (console.Result, error) {
	d.mu.Lock()
	if d.storm != nil {
		running := d.storm.seed
		d.mu.Unlock()
		return console.Result{}, fmt.Errorf("%w: a storm with seed %d is running", console.ErrNotNow, running)
	}
	ctx, stop := context.WithCancel(d.ctx)
	d.storm = newStorm(seed, stop)
	d.mu.Unlock()
	d.watch.SetControl(func(c *watch.Control) { c.Storm, c.Seed, c.Posted = true, seed, 0 })
	d.running.Go(func() { d.blow(ctx) })
	did := console.Result{Text: fmt.Sprintf("You: storm started: %d orders a minute, seed %d", Rate, seed)}
	d.watch.Say(watch.Attack, "", did.Text)
	return did, nil
}

// stopStorm ends the storm and repairs everything. The orders that wait are processed.
func (d *Desk) stopStorm() (console.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.storm == nil {
		return console.Result{}, fmt.Errorf("%w: no storm is running", console.ErrNotNow)
	}
	d.storm.stop()
	did := console.Result{Text: fmt.Sprintf("You: storm stopped after %d orders", d.storm.posted)}
	d.storm = nil
	d.system.Proxy.Heal()
	d.system.Stripe.Machine((*stripetest.Machine).Heal)
	d.showFaults()
	d.watch.SetControl(func(c *watch.Control) { c.Storm = false })
	d.watch.Say(watch.Attack, "", did.Text)
	return did, nil
}

// stormAct is what a storm does again and again.
type stormAct struct {
	every time.Duration
	do    func(ctx context.Context) error
}

// blow runs a storm until its context ends. An act that fails is tried again later.
func (d *Desk) blow(ctx context.Context) {
	var acting sync.WaitGroup
	for _, a := range []stormAct{
		{time.Minute / Rate, func(context.Context) error { return d.postStorm() }},
		{profileTime, d.changeProfile},
		{2 * time.Second, func(context.Context) error { d.target().Kill(one()); return nil }},
		{20 * time.Second, func(context.Context) error { d.target().Freeze(frozenFor, one()); return nil }},
		{time.Second, func(ctx context.Context) error { _, err := d.authenticate(ctx); return err }},
		{5 * time.Second, func(ctx context.Context) error { return d.target().Look(ctx) }},
		{15 * time.Second, func(context.Context) error { _, err := d.target().Redrive(); return err }},
		{30 * time.Second, func(ctx context.Context) error { _, err := d.rollOut(ctx); return err }},
		{75 * time.Second, d.stormDay},
	} {
		acting.Go(func() {
			for wait(ctx, a.every) {
				_ = a.do(ctx)
			}
		})
	}
	acting.Wait()
}

// postStorm posts the next order of the storm.
func (d *Desk) postStorm() error {
	d.mu.Lock()
	if d.storm == nil {
		d.mu.Unlock()
		return nil
	}
	bodies, posted := d.storm.next(), d.storm.posted
	d.mu.Unlock()
	if posted%20 == 0 {
		d.watch.SetControl(func(c *watch.Control) { c.Posted = posted })
	}
	return d.post(bodies...)
}

// next returns the messages of the next order: one of ten is posted twice, and some
// conflict, are malformed, are declined or need their customer.
func (st *storm) next() []string {
	st.posted++
	c := content{
		id: fmt.Sprintf("%s%d-%d", stormy, st.seed, st.posted), method: works, quantity: 1 + st.orders.IntN(3),
	}
	switch roll := st.orders.IntN(100); {
	case roll < 10:
		return twice(c)
	case roll < 12:
		return conflicting(c)
	case roll < 13:
		return malformed(c)
	case roll < 17:
		return paying(declines)(c)
	case roll < 20:
		return paying(needsUser)(c)
	}
	return once(c)
}

// changeProfile lets other things go wrong.
func (d *Desk) changeProfile(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.storm == nil {
		return nil
	}
	all := profiles()
	d.storm.now = all[d.storm.faults.IntN(len(all))]
	d.storm.until = time.Now().Add(profileTime)
	d.showFaults()
	return nil
}

// one matches one busy instance.
func one() func([]byte) bool {
	taken := false
	return func([]byte) bool {
		first := !taken
		taken = true
		return first
	}
}

func (d *Desk) stormDay(ctx context.Context) error {
	d.watch.Say(watch.Attack, "", "25 hours pass")
	return d.jump(ctx, keysExpire)
}

// draw reports whether a call fails, and how.
func (st *storm) draw(kinds int) (kind int, hit bool) {
	if kinds == 0 || st.hits.Float64() >= st.now.share {
		return 0, false
	}
	return st.hits.IntN(kinds), true
}

func (st *storm) beforeStripe(s *system.System, c stripetest.Call) {
	if i, hit := st.draw(len(st.now.stripe)); hit {
		s.Stripe.Fail(stripetest.Fault{Kind: st.now.stripe[i], Number: c.Number})
	}
}

func (st *storm) beforeTable(s *system.System, c dynamodbtest.Call) {
	if i, hit := st.draw(len(st.now.table)); hit {
		s.Proxy.Fail(dynamodbtest.Fault{Kind: st.now.table[i], Number: c.Number, Times: 1})
	}
}

// duplicate delivers one message of ten twice.
func (st *storm) duplicate() sqstest.Twice {
	switch st.hits.IntN(20) {
	case 0:
		return sqstest.InSameBatch
	case 1:
		return sqstest.AtOnceBeside
	}
	return sqstest.Once
}

package attack

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// The times of a storm: how often something new goes wrong, and how often each act comes.
const (
	stormTick   = time.Minute / Rate
	profileTime = 3 * time.Second
	killEvery   = 2 * time.Second
	freezeEvery = 20 * time.Second
	peopleEvery = time.Second
	lookEvery   = 8 * time.Second
	redriveEach = 15 * time.Second
	rollOutEach = 30 * time.Second
	dayEvery    = 75 * time.Second
)

// storm is a running storm. The desk's mutex guards it.
type storm struct {
	seed   uint64
	dice   *rand.Rand
	posted int
	faults profile
	stop   context.CancelFunc
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
		{"Stripe loses requests and answers", 0.15, []stripetest.FaultKind{stripetest.LoseRequest, stripetest.LoseResponse}, nil},
		{"Stripe answers with errors", 0.2, []stripetest.FaultKind{
			stripetest.ServerErrorBeforeEffect, stripetest.ServerErrorAfterEffect, stripetest.Unavailable, stripetest.RateLimited,
		}, nil},
		{"DynamoDB loses requests and answers", 0.1, nil, []dynamodbtest.Kind{dynamodbtest.LoseBefore, dynamodbtest.LoseAfter}},
		{"DynamoDB throttles and fails", 0.2, nil, []dynamodbtest.Kind{
			dynamodbtest.ThroughputExceeded, dynamodbtest.InternalError, dynamodbtest.InternalErrorAfter, dynamodbtest.Throttled,
		}},
	}
}

// Storm implements console.Actions. A storm does everything at random. The same seed
// makes the same orders and the same choices; what they hit depends on the machine.
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
		return console.Result{}, fmt.Errorf("%w: a storm with seed %d is running", ErrNotNow, running)
	}
	ctx, stop := context.WithCancel(d.ctx)
	d.storm = &storm{seed: seed, dice: rand.New(rand.NewPCG(seed, 0)), stop: stop} //nolint:gosec // G404: not a secret
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
		return console.Result{}, fmt.Errorf("%w: no storm is running", ErrNotNow)
	}
	d.storm.stop()
	did := console.Result{Text: fmt.Sprintf("You: storm stopped after %d orders", d.storm.posted)}
	d.storm = nil
	d.showOutages()
	d.watch.SetControl(func(c *watch.Control) { c.Storm = false })
	d.watch.Say(watch.Attack, "", did.Text)
	return did, nil
}

// blow runs a storm until its context ends.
func (d *Desk) blow(ctx context.Context) {
	posts := time.NewTicker(stormTick)
	defer posts.Stop()
	acts := []struct {
		every time.Duration
		do    func(ctx context.Context) error
	}{
		{profileTime, d.changeProfile}, {killEvery, d.killOne}, {freezeEvery, d.freezeOne}, {peopleEvery, d.people},
		{lookEvery, d.look}, {redriveEach, d.redriveAll}, {rollOutEach, d.rollOutOne}, {dayEvery, d.stormDay},
	}
	for n := time.Duration(1); ; n++ {
		select {
		case <-posts.C:
		case <-ctx.Done():
			return
		}
		_ = d.postStorm() // the local queue accepts every small message
		for _, a := range acts {
			if n*stormTick/a.every == (n-1)*stormTick/a.every {
				continue
			}
			if a.every <= peopleEvery || a.every == profileTime {
				_ = a.do(ctx)
				continue
			}
			d.later(func(ctx context.Context) { _ = a.do(ctx) }) // what fails is tried again
		}
	}
}

// postStorm posts the next order of the storm: one of ten twice, and some that conflict,
// are malformed, are declined or need their customer.
func (d *Desk) postStorm() error {
	d.mu.Lock()
	st := d.storm
	if st == nil {
		d.mu.Unlock()
		return nil
	}
	st.posted++
	posted := st.posted
	c := content{id: fmt.Sprintf("%s%d-%d", stormy, st.seed, posted), method: works, quantity: 1 + st.dice.IntN(3)}
	roll := st.dice.IntN(100)
	d.mu.Unlock()
	if posted%20 == 0 {
		d.watch.SetControl(func(c *watch.Control) { c.Posted = posted })
	}
	other := c
	other.quantity += 10
	switch {
	case roll < 10:
		return d.post(c.body(), c.body())
	case roll < 12:
		return d.post(c.body(), other.body())
	case roll < 13:
		return d.post(c.body()[1:])
	case roll < 17:
		c.method = declines
	case roll < 20:
		c.method = needsUser
	}
	return d.post(c.body())
}

// roll returns a number from 0 to n-1, or -1 if the storm is over.
func (d *Desk) roll(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.storm == nil {
		return -1
	}
	return d.storm.dice.IntN(n)
}

func (d *Desk) changeProfile(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.storm == nil {
		return nil
	}
	all := profiles()
	d.storm.faults = all[d.storm.dice.IntN(len(all))]
	faults := []watch.Fault{}
	if d.storm.faults.text != "" {
		faults = append(faults, watch.Fault{Text: d.storm.faults.text, Until: time.Now().Add(profileTime).UnixMilli()})
	}
	d.watch.SetFaults(faults)
	return nil
}

// killOne kills one busy instance.
func (d *Desk) killOne(context.Context) error {
	killed := false
	d.target().Function.Kill(func([]byte) bool {
		first := !killed
		killed = true
		return first
	})
	return nil
}

func (d *Desk) freezeOne(context.Context) error {
	frozen := false
	d.target().Function.Freeze(frozenFor, func([]byte) bool {
		first := !frozen
		frozen = true
		return first
	})
	return nil
}

// people lets the customer of a waiting order authenticate.
func (d *Desk) people(ctx context.Context) error {
	_, err := d.authenticate(ctx)
	return err
}

func (d *Desk) look(ctx context.Context) error { return d.target().Look(ctx) }

func (d *Desk) redriveAll(context.Context) error {
	_, err := d.target().Redrive()
	return err
}

func (d *Desk) rollOutOne(ctx context.Context) error {
	_, err := d.rollOut(ctx)
	return err
}

func (d *Desk) stormDay(ctx context.Context) error {
	d.watch.Say(watch.Attack, "", "25 hours pass")
	return d.jump(ctx, keysExpire)
}

// hits reports whether a call fails, and how.
func (st *storm) hits(kinds int) (kind int, hit bool) {
	if kinds == 0 || st.dice.Float64() >= st.faults.share {
		return 0, false
	}
	return st.dice.IntN(kinds), true
}

func (st *storm) beforeStripe(s *system.System, c stripetest.Call) {
	if i, hit := st.hits(len(st.faults.stripe)); hit {
		s.Stripe.Fail(stripetest.Fault{Kind: st.faults.stripe[i], Number: c.Number})
	}
}

func (st *storm) beforeTable(s *system.System, c dynamodbtest.Call) {
	if i, hit := st.hits(len(st.faults.table)); hit {
		s.Proxy.Fail(dynamodbtest.Fault{Kind: st.faults.table[i], Number: c.Number, Times: 1})
	}
}

// duplicate delivers one message of ten twice.
func (st *storm) duplicate() sqstest.Twice {
	switch st.dice.IntN(20) {
	case 0:
		return sqstest.InSameBatch
	case 1:
		return sqstest.AtOnceBeside
	}
	return sqstest.Once
}

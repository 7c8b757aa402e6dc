package attack

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/faults"
	"orderonce/scripts/local/incidents"
)

const (
	rate        = 1000            // orders that a storm posts in a minute
	profileTime = 3 * time.Second // how long the same things go wrong
	late        = 8 * time.Second // longer than the function's timeout
	duplicates  = 0.15            // share of the messages that are delivered twice
)

// storm is a running storm. The attacker's mutex guards it.
type storm struct {
	seed   uint64
	orders *rand.Rand // draws the orders, and nothing else
	faults *faults.Injector
	posted int
	now    []string  // what goes wrong
	until  time.Time // of that
	stop   context.CancelFunc
}

func newStorm(seed uint64, stop context.CancelFunc) *storm {
	return &storm{
		seed: seed, orders: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // G404: not a secret
		faults: faults.New(seed, late, func(string) {}), stop: stop,
	}
}

// setStorm starts a storm from a seed, or ends it with "". A storm attacks at random. The
// same seed makes the same orders and the same sequence of faults; which calls they hit
// depends on the machine. Its end repairs everything, and the orders that wait are
// processed.
func (a *Attacker) setStorm(text string) (did console.Result, err error) {
	seed, err := strconv.ParseUint(cmp.Or(text, "0"), 10, 64)
	if err != nil {
		return did, fmt.Errorf("%w: seed: want a whole number, 0 or more", console.ErrNotNow)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch on := text != ""; {
	case on && a.storm != nil:
		return did, fmt.Errorf("%w: a storm with seed %d is running", console.ErrNotNow, a.storm.seed)
	case on:
		ctx, stop := context.WithCancel(a.ctx)
		a.storm = newStorm(seed, stop)
		a.watch.SetControl(func(c *watch.Control) { c.Storm, c.Seed, c.Posted = true, seed, 0 })
		a.running.Go(func() { a.blow(ctx) })
		did.Text = fmt.Sprintf("You: storm started: %d orders a minute, seed %d", rate, seed)
	case a.storm == nil:
		return did, fmt.Errorf("%w: no storm is running", console.ErrNotNow)
	default:
		a.storm.stop()
		did.Text = fmt.Sprintf("You: storm stopped after %d orders", a.storm.posted)
		a.storm.faults.End(a.system)
		a.storm = nil
		a.showFaults()
		a.watch.SetControl(func(c *watch.Control) { c.Storm = false })
	}
	a.watch.Say(watch.Attack, did.Text)
	return did, nil
}

// blow attacks until its context ends. What fails is tried again later.
func (a *Attacker) blow(ctx context.Context) {
	s := a.target()
	authenticate := a.decides(order.ActionRequired, "", "authenticated", (*stripetest.Machine).CustomerPays)
	var acting sync.WaitGroup
	for _, act := range []struct {
		every time.Duration
		do    func() error
	}{
		{time.Minute / rate, a.postStorm},
		{profileTime, a.changeProfile},
		{2 * time.Second, func() error { s.Kill(one()); return nil }},
		{20 * time.Second, func() error { s.Freeze(frozenFor, one()); return nil }},
		{time.Second, func() error { _, err := authenticate(ctx); return err }},
		{5 * time.Second, func() error { return s.Look(ctx) }},
		{15 * time.Second, func() error { _, err := s.Redrive(); return err }},
		{30 * time.Second, func() error { _, err := a.rollOut(ctx); return err }},
		{75 * time.Second, func() error {
			a.watch.Say(watch.Attack, "25 hours pass")
			return a.jump(ctx, keysExpire)
		}},
	} {
		acting.Go(func() {
			for wait(ctx, act.every) {
				_ = act.do()
			}
		})
	}
	acting.Wait()
}

func one() func([]byte) bool {
	taken := false
	return func([]byte) bool {
		first := !taken
		taken = true
		return first
	}
}

func (a *Attacker) postStorm() error {
	a.mu.Lock()
	if a.storm == nil {
		a.mu.Unlock()
		return nil
	}
	bodies, posted := a.storm.next(), a.storm.posted
	a.mu.Unlock()
	if posted%20 == 0 {
		a.watch.SetControl(func(c *watch.Control) { c.Posted = posted })
	}
	return a.send(bodies)
}

// next returns the messages of the next order: one of ten is posted twice, and some
// conflict, are malformed, are declined or need their customer.
func (st *storm) next() []string {
	st.posted++
	id := fmt.Sprintf("%s%d-%d", stormy, st.seed, st.posted)
	c := content{id: id, method: incidents.Pays, quantity: 1 + st.orders.IntN(3)}
	switch roll := st.orders.IntN(100); {
	case roll < 10:
		return twice(c)
	case roll < 12:
		return conflicting(c)
	case roll < 13:
		return malformed(c)
	case roll < 17:
		return paying(incidents.Declines)(c)
	case roll < 20:
		return paying(incidents.Asks)(c)
	}
	return once(c)
}

func (a *Attacker) changeProfile() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.storm != nil {
		a.storm.now, a.storm.until = a.storm.faults.Change(a.system), time.Now().Add(profileTime)
		a.showFaults()
	}
	return nil
}

func (a *Attacker) duplicate(m sqstest.Message) sqstest.Twice {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.storm == nil || !strings.Contains(m.Body, stormy) {
		return sqstest.Once
	}
	return a.storm.faults.Duplicate(duplicates)
}

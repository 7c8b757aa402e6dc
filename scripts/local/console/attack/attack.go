// Package attack does to a running local system what the live page offers: it posts
// orders, kills and freezes the function, loses answers, moves the clocks, deploys
// programs without a guard, and does all of it at random in a storm. It checks nothing:
// package watch shows what became of it.
package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/system"
)

const (
	visibility = 6 * time.Second
	stepTime   = 250 * time.Millisecond
)

// Attacker attacks one system. It is safe for concurrent use.
type Attacker struct {
	watch  *watch.Watch
	build  func(ctx context.Context, guard, out string) error
	folder string // of the programs

	deploying sync.Mutex // held from the build of a program to its deployment; before mu

	mu      sync.Mutex
	system  *system.System // nil before Start
	ctx     context.Context
	posted  int // orders, for their names
	slow    bool
	version int
	guard   string            // missing in the deployed program
	last    sqstest.Message   // that the function acknowledged or parked last
	traps   map[moment]func() // each is called once
	failing map[string]outage // by their texts
	storm   *storm
	running sync.WaitGroup
	stop    context.CancelFunc
}

// moment is when something has happened to an order: a call to Stripe or a step of its
// row, before the answer is sent, or the end of a delivery.
type moment struct{ order, at string }

const deliveryEnds = "delivery ends"

// New returns an attacker of the system that Hook and Start are called with. The program
// order of the folder is the one that is deployed first, and build compiles it without a
// guard into a file.
func New(
	w *watch.Watch, folder string, build func(ctx context.Context, guard, out string) error,
) *Attacker {
	return &Attacker{
		watch: w, folder: folder, build: build, slow: true, version: 1,
		traps: map[moment]func(){}, failing: map[string]outage{},
	}
}

// Hook adds what the attacks need to the options of a system, with times that a person
// can follow: each call of an order that the visitor posts takes a moment, so the
// function needs more time than by default.
func (a *Attacker) Hook(o *system.Options) {
	o.BeforeStripe = a.beforeStripe
	o.AfterStripe = func(c stripetest.Call) {
		if c.Status < 300 {
			a.reached(c.OrderID, string(c.Endpoint))
		}
	}
	o.Observe, o.Duplicate = a.delivered, a.duplicate
	o.FunctionTimeout, o.Visibility = 5*time.Second, visibility
	o.Env = map[string]string{"ORDER_BUDGET": "4s", "STRIPE_TIMEOUT": "1500ms"}
}

// Start begins to attack a started system. What attacks leave behind ends with the
// context, and Close waits for it.
func (a *Attacker) Start(ctx context.Context, s *system.System) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.system = s
	a.ctx, a.stop = context.WithCancel(ctx)
	a.watch.SetControl(func(c *watch.Control) { c.Version, c.SlowSteps = "v1", a.slow })
	a.watch.Connect(s, a.beforeTable)
	s.Proxy.After(func(c dynamodbtest.Call) { // before the answer is sent
		id, step := watch.StepOf(c.Request)
		a.reached(id, string(step))
	})
}

// Close ends what attacks left behind, and waits for it.
func (a *Attacker) Close() {
	a.mu.Lock()
	stop := a.stop
	a.mu.Unlock()
	if stop != nil {
		stop()
	}
	a.running.Wait()
}

func (a *Attacker) setPace(slow bool) (console.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slow = slow
	a.watch.SetControl(func(c *watch.Control) { c.SlowSteps = slow })
	if slow {
		return console.Result{Text: "You: each step of your orders takes a moment now"}, nil
	}
	return console.Result{Text: "You: full speed"}, nil
}

func (a *Attacker) target() *system.System {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.system
}

func (a *Attacker) after(order, at string, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.traps[moment{order, at}] = f
}

func (a *Attacker) reached(order, at string) {
	a.mu.Lock()
	f := a.traps[moment{order, at}]
	delete(a.traps, moment{order, at})
	a.mu.Unlock()
	if f != nil {
		f()
	}
}

// delivered is called at the end of each batch, also of other queues.
func (a *Attacker) delivered(b sqstest.Batch) {
	for _, m := range b.Messages {
		id := orderOf(m.Body)
		if id == "" {
			continue
		}
		if b.Err == nil && !slices.Contains(b.Failed, m.ID) {
			a.mu.Lock()
			a.last = m
			a.mu.Unlock()
		}
		a.reached(id, deliveryEnds)
	}
}

// later runs f in the background until the attacker is closed.
func (a *Attacker) later(f func(ctx context.Context)) {
	a.mu.Lock()
	ctx := a.ctx
	a.mu.Unlock()
	a.running.Go(func() { f(ctx) })
}

// wait reports whether the time is over before the context ends.
func wait(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pace makes a call of the visitor's order take a moment, unless something waits for the
// end of its delivery: each write is repeated until then, and no time would be left for
// what follows.
func (a *Attacker) pace(order string) {
	a.mu.Lock()
	_, hurries := a.traps[moment{order, deliveryEnds}]
	slow, ctx := a.slow && strings.HasPrefix(order, visitors) && !hurries, a.ctx
	a.mu.Unlock()
	if slow {
		wait(ctx, stepTime)
	}
}

func (a *Attacker) beforeStripe(c stripetest.Call) {
	switch c.Endpoint { //nolint:exhaustive // the other calls are not steps of an order
	case stripetest.Create, stripetest.Confirm, stripetest.Read:
		a.pace(c.OrderID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.failing {
		if o.stripe != "" {
			a.system.Stripe.Fail(stripetest.Fault{Kind: o.stripe, Number: c.Number})
			return
		}
	}
	if a.storm != nil {
		a.storm.faults.BeforeStripe(a.system, c)
	}
}

func (a *Attacker) beforeTable(order string, step watch.Step, c dynamodbtest.Call) {
	if step != "" {
		a.pace(order)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.failing {
		if o.throttled && c.Number%2 == 0 {
			a.system.Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.ThroughputExceeded, Number: c.Number, Times: 1})
			return
		}
	}
	if a.storm != nil {
		a.storm.faults.BeforeDynamoDB(a.system, c)
	}
}

type outage struct {
	text      string
	until     time.Time
	stripe    stripetest.FaultKind // every call to Stripe
	throttled bool                 // every second call to DynamoDB
}

func (a *Attacker) fails(o outage, lasts time.Duration, orders int) action {
	return func(context.Context) (console.Result, error) {
		o := o
		o.until = time.Now().Add(lasts)
		a.mu.Lock()
		a.failing[o.text] = o
		a.showFaults()
		a.mu.Unlock()
		a.later(func(ctx context.Context) {
			if !wait(ctx, lasts) {
				return
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.failing[o.text].until.After(o.until) {
				return // it was extended
			}
			delete(a.failing, o.text)
			a.showFaults()
			a.watch.Say(watch.Good, o.text+": over")
		})
		text := fmt.Sprintf("%s for %.0f s; %d orders posted", o.text, lasts.Seconds(), orders)
		return a.postMany(orders, 0, text)
	}
}

// showFaults shows the outages and what a storm lets go wrong. The caller holds a.mu.
func (a *Attacker) showFaults() {
	var shown []watch.Fault
	for _, o := range a.failing {
		shown = append(shown, watch.Fault{Text: o.text, Until: o.until.UnixMilli()})
	}
	slices.SortFunc(shown, func(a, b watch.Fault) int { return strings.Compare(a.Text, b.Text) })
	if a.storm != nil {
		for _, text := range a.storm.now {
			shown = append(shown, watch.Fault{Text: text, Until: a.storm.until.UnixMilli()})
		}
	}
	a.watch.SetFaults(shown)
}

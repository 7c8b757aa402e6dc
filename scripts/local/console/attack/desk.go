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

// The settings of a system that a person can follow: each call of an order that the
// visitor posts takes a moment, so the function needs more time than by default.
const (
	FunctionTimeout = 5 * time.Second
	Visibility      = 6 * time.Second
	stepTime        = 250 * time.Millisecond
)

// Env are the variables of the functions that go with these settings.
func Env() map[string]string {
	return map[string]string{"ORDER_BUDGET": "4s", "STRIPE_TIMEOUT": "1500ms"}
}

var _ console.Actions = (*Desk)(nil)

// Desk attacks one system. It is safe for concurrent use.
type Desk struct {
	watch  *watch.Watch
	build  Builder
	folder string // of the programs

	deploying sync.Mutex // held from the build of a program to its deployment; before mu
	programs  []string   // deployed last and before, oldest first

	mu      sync.Mutex
	system  *system.System // nil before Start
	ctx     context.Context
	posted  int // orders, for their names
	slow    bool
	version int
	guard   string          // missing in the deployed program
	last    sqstest.Message // that the function acknowledged or parked last
	victims map[string]victim
	ends    map[string]func() // by order: called once at the end of its next delivery
	written map[string]func() // likewise, after the write of its outcome
	fast    map[string]bool   // orders whose calls take no extra time
	outages map[string]outage
	storm   *storm
	running sync.WaitGroup
	stop    context.CancelFunc
}

// Builder compiles the order function without a guard into a file.
type Builder func(ctx context.Context, guard, out string) error

// victim is an order whose next call to an endpoint of Stripe is followed by an act,
// before its answer is sent.
type victim struct {
	at  stripetest.Endpoint
	act func(c stripetest.Call)
}

// New returns a desk for the system that Hook and Start are called with. The program
// order of the folder is the one that is deployed first.
func New(w *watch.Watch, folder string, build Builder) *Desk {
	return &Desk{
		watch: w, folder: folder, build: build, slow: true, version: 1,
		victims: map[string]victim{}, outages: map[string]outage{},
		ends: map[string]func(){}, written: map[string]func(){}, fast: map[string]bool{},
	}
}

// Hook adds what the attacks need to the options of a system.
func (d *Desk) Hook(o *system.Options) {
	o.BeforeStripe, o.AfterStripe = d.beforeStripe, d.afterStripe
	o.Observe = d.delivered
	o.Duplicate = d.duplicate
}

// delivered is called at the end of each batch, also of other queues.
func (d *Desk) delivered(b sqstest.Batch) {
	var acts []func()
	d.mu.Lock()
	for _, m := range b.Messages {
		id := orderOf(m.Body)
		if id == "" {
			continue
		}
		if b.Err == nil && !slices.Contains(b.Failed, m.ID) {
			d.last = m
		}
		if f, ok := d.ends[id]; ok {
			acts = append(acts, f)
			delete(d.ends, id)
		}
	}
	d.mu.Unlock()
	for _, act := range acts {
		act()
	}
}

// onEnd calls f once when the next delivery of an order has ended.
func (d *Desk) onEnd(id string, f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends[id] = f
}

// Start begins to attack a started system. What attacks leave behind ends with the
// context, and Close waits for it.
func (d *Desk) Start(ctx context.Context, s *system.System) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.system = s
	d.ctx, d.stop = context.WithCancel(ctx)
	d.watch.SetControl(func(c *watch.Control) { c.Version, c.SlowSteps = "v1", d.slow })
	d.watch.Connect(s, d.beforeTable)
	s.Proxy.After(d.afterTable)
}

// Close ends what attacks left behind, and waits for it.
func (d *Desk) Close() {
	d.mu.Lock()
	stop := d.stop
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
	d.running.Wait()
}

// Pace implements console.Actions.
func (d *Desk) Pace(_ context.Context, slow bool) (console.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = slow
	d.watch.SetControl(func(c *watch.Control) { c.SlowSteps = slow })
	if slow {
		return console.Result{Text: "You: each step of your orders takes a moment now"}, nil
	}
	return console.Result{Text: "You: full speed"}, nil
}

// later runs f in the background until the desk is closed.
func (d *Desk) later(f func(ctx context.Context)) {
	d.mu.Lock()
	ctx := d.ctx
	d.mu.Unlock()
	d.running.Go(func() { f(ctx) })
}

// wait waits for a time or until the context ends. It reports whether the time is over.
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

// visitors begins the names of the orders that the visitor posts, and stormy those of a
// storm.
const (
	visitors = "LIVE-"
	stormy   = "STORM-"
)

// pace makes a call of the visitor's order take a moment.
func (d *Desk) pace(order string) {
	d.mu.Lock()
	slow, ctx := d.slow && strings.HasPrefix(order, visitors) && !d.fast[order], d.ctx
	d.mu.Unlock()
	if slow {
		wait(ctx, stepTime)
	}
}

func (d *Desk) beforeStripe(c stripetest.Call) {
	switch c.Endpoint { //nolint:exhaustive // the other calls are not steps of an order
	case stripetest.Create, stripetest.Confirm, stripetest.Read:
		d.pace(c.OrderID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.outages {
		if o.stripe != "" {
			d.system.Stripe.Fail(stripetest.Fault{Kind: o.stripe, Number: c.Number})
			return
		}
	}
	if d.storm != nil {
		d.storm.beforeStripe(d.system, c)
	}
}

func (d *Desk) afterStripe(c stripetest.Call) {
	d.mu.Lock()
	v, hit := d.victims[c.OrderID]
	hit = hit && v.at == c.Endpoint && c.Status < 300
	if hit {
		delete(d.victims, c.OrderID)
	}
	d.mu.Unlock()
	if hit {
		v.act(c)
	}
}

func (d *Desk) beforeTable(order string, step watch.Step, c dynamodbtest.Call) {
	if step != "" {
		d.pace(order)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.outages {
		if o.throttled && c.Number%2 == 0 {
			d.system.Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.ThroughputExceeded, Number: c.Number, Times: 1})
			return
		}
	}
	if d.storm != nil {
		d.storm.beforeTable(d.system, c)
	}
}

func (d *Desk) duplicate(m sqstest.Message) sqstest.Twice {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.storm == nil || !strings.Contains(m.Body, stormy) {
		return sqstest.Once
	}
	return d.storm.duplicate()
}

// outage is a service that fails for a while.
type outage struct {
	text      string
	until     time.Time
	stripe    stripetest.FaultKind // every call to Stripe
	throttled bool                 // every second call to DynamoDB
}

// fail makes a service fail for a time.
func (d *Desk) fail(name string, o outage, lasts time.Duration) {
	o.until = time.Now().Add(lasts)
	d.mu.Lock()
	d.outages[name] = o
	d.showFaults()
	d.mu.Unlock()
	d.later(func(ctx context.Context) {
		if !wait(ctx, lasts) {
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.outages[name].until.After(o.until) {
			return // it was extended
		}
		delete(d.outages, name)
		d.showFaults()
		d.watch.Say(watch.Good, "", o.text+": over")
	})
}

// showFaults shows the outages and what a storm lets go wrong. The caller holds d.mu.
func (d *Desk) showFaults() {
	var shown []watch.Fault
	for _, o := range d.outages {
		shown = append(shown, watch.Fault{Text: o.text, Until: o.until.UnixMilli()})
	}
	slices.SortFunc(shown, func(a, b watch.Fault) int { return strings.Compare(a.Text, b.Text) })
	if d.storm != nil && d.storm.now.text != "" {
		shown = append(shown, watch.Fault{Text: d.storm.now.text, Until: d.storm.until.UnixMilli()})
	}
	d.watch.SetFaults(shown)
}

// instanceOf matches the instances that process an order.
func instanceOf(order string) func(payload []byte) bool {
	return func(payload []byte) bool { return strings.Contains(string(payload), fmt.Sprintf(`\"%s\"`, order)) }
}

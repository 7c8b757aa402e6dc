// Package world runs the real product in a simulated world. Time is a number, each call
// to the outside is a step, and at each step a Choose function decides what happens next
// and what goes wrong. The processor, the decoder, the Stripe adapter and the decision
// about a message are the deployed ones, in some worlds also the batch handler, the
// adapter's HTTP client, the webhook endpoint, the reconciler and the publisher. The
// store, Stripe and the queue are the ones in memory, which pass the same contract tests
// as the real ones.
//
// The package refuses to know what is correct, which the oracle decides, and which
// schedules and cases are worth a run, which package simulation decides. It does not
// format its history for people.
//
// Start with case.go (the initial state), option.go (what can happen next), step.go (what
// a choice does), fault.go (what can go wrong with a call), worker.go (one delivery) and
// webhook.go, reconcile.go, publish.go and people.go (those who act after it).
package world

import (
	"fmt"
	"strconv"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/stage"
)

const (
	callTime = 100 * time.Millisecond // of a call without a fault, so that times in histories are readable
	scope    = order.Scope("prove")   // of this deployment

	ordersQueue = "orders"
	deadQueue   = "orders-dead"
	fifo        = ".fifo"  // the suffix of FIFO queues
	number      = "number" // the attribute with a message's place in the case, which a redrive keeps
)

// World is one run of a case on a stage, which has its clock, its workers and its
// choices.
type World struct {
	stage.Stage

	setup     Case
	sent      []oracle.Sent
	lab       *Lab
	services  services
	queue     queue
	born      int // workers
	message   int // the place of the message that was worked on last
	cause     oracle.Cause
	late      []late  // requests that were sent and have not arrived, or not ended
	hooks     []*hook // by the number of their event
	stream    stream
	incidents incidents
	choices   choices
	history   history
	oracle    *oracle.Oracle
	tally     Tally
}

type services struct {
	store    ordertest.Memory
	stripe   *stripetest.Machine
	payments *charge.Payments
	caller   *Worker // whose request the Stripe adapter sends
	policy   sqs.Policy
}

type queue struct {
	*sqstest.Machine

	orders, dead string
	unseen       int       // messages that were never delivered
	oldest       time.Time // when the oldest message was sent
}

// NewWorld returns a world in which no message has been sent.
func (l *Lab) NewWorld(c Case, choose stage.Choose) *World {
	w := &World{setup: c, sent: c.sent(), lab: l, tally: Tally{}}
	w.Schedule(l.pool, choose, epoch())
	w.Oldest = true
	w.services.policy = sqs.DefaultPolicy()
	w.services.stripe = stripetest.New(stripetest.Rules{KeyLife: c.KeyLife})
	options := stripe.Options{Key: apiKey, Scope: scope, Exchange: w.exchange}
	if c.Adapter {
		options = stripe.Options{Key: apiKey, Scope: scope, BaseURL: "http://stripe.test", Transport: wire{w}}
	}
	w.services.payments = charge.New(options)
	for _, id := range c.orders() {
		w.incidents.orders = append(w.incidents.orders, &incident{id: id})
	}
	w.oracle = oracle.New(view{w}, l.rules, c.subject(), w.sent)
	w.makeQueues()
	return w
}

// epoch is when worlds begin. It is far ahead, because contexts know only the real clock.
func epoch() time.Time { return time.Unix(5_000_000_000, 0).UTC() }

func (w *World) makeQueues() {
	w.queue = queue{Machine: sqstest.New(1), orders: ordersQueue, dead: deadQueue, oldest: epoch()}
	if w.setup.Adversarial {
		w.queue.Pick = w.pickMessage
	}
	settings := sqstest.DefaultSettings()
	if w.setup.FIFO {
		w.queue.orders, w.queue.dead = ordersQueue+fifo, deadQueue+fifo
	}
	settings.Retention = oracle.DeadRetention
	must(w.queue.Create(epoch(), w.queue.dead, settings))
	settings.Retention, settings.MaxReceives = oracle.Retention, oracle.MaxReceives
	settings.Visibility, settings.DeadLetters = oracle.Visibility, w.queue.dead
	if w.setup.Receives > 0 {
		settings.MaxReceives = w.setup.Receives
	}
	must(w.queue.Create(epoch(), w.queue.orders, settings))
}

// Run sends the case's messages and takes steps until nothing is left to do or an
// invariant is broken. It returns the violation, or nil.
func (w *World) Run() *stage.Violation { return w.RunUntil(func() bool { return false }) }

// RunUntil is Run, but it ends early if over returns true before a step.
func (w *World) RunUntil(over func() bool) *stage.Violation {
	for i := range w.setup.Messages {
		w.send(i)
	}
	for w.Broken == nil && w.next(over) {
		w.afterStep()
	}
	w.End()
	w.choices.trace.number(w.Now.UnixNano())
	broken, noted := w.oracle.Conclude()
	if noted {
		w.cutHistory()
	}
	return broken
}

// next takes one step. It returns false if nothing is left to do.
func (w *World) next(over func() bool) bool {
	options := w.options()
	if len(options) == 0 {
		w.oracle.AtRest()
		return false
	}
	if over() || !w.oracle.Continue(w.stepsSinceDeviation()) {
		return false
	}
	i := w.Pick(stage.Deviation, len(options))
	o := options[i]
	w.chose(i, len(options))
	w.tally.step(o, i > 0)
	if i > 0 {
		w.choices.deviations = append(w.choices.deviations, o.deviation())
	}
	w.take(o)
	return true
}

func (w *World) afterStep() {
	w.noticeEvents()
	w.appendStream()
	w.oracle.AfterStep(w.message, w.cause)
	w.markNoted(0)
	w.Broken = w.oracle.Broken()
}

// Case returns the case of the world.
func (w *World) Case() Case { return w.setup }

func (w *World) send(i int) {
	m := &w.setup.Messages[i]
	draft := sqstest.Draft{Body: w.sent[i].Body, Attributes: map[string]sqstest.Attribute{
		number: {Type: "Number", Text: strconv.Itoa(i)},
	}}
	if w.setup.FIFO {
		draft.Group, draft.DeduplicationID = m.group(), fmt.Sprintf("%d-%d", i, w.Now.UnixNano())
	}
	must1(w.queue.Send(w.Now, w.queue.orders, draft))
	w.queue.unseen++
	if !w.Recording() {
		return
	}
	w.Add("producer", fmt.Sprintf("sends message %d: %s", i+1, m), "")
}

func numberOf(m sqstest.Message) int { return must1(strconv.Atoi(m.Attributes[number].Text)) }

// delivery returns a message as the oracle knows it.
func delivery(m sqstest.Message) oracle.Delivery {
	return oracle.Delivery{
		Message: numberOf(m), ID: m.ID, Receives: m.Receives, Sent: m.Sent,
		FirstSent: m.Attributes[sqs.AttrFirstSent].Text, Group: m.Group,
	}
}

type view struct{ world *World }

var _ oracle.View = view{}

func (v view) Now() time.Time { return v.world.Now }

// Row returns an order's record, and whether there is one.
func (v view) Row(id order.ID) (order.Record, bool) { return v.world.services.store.Peek(id) }

func (v view) Stripe() oracle.Stripe { //nolint:ireturn // as in oracle.View
	return v.world.services.stripe
}

// Expired returns how many messages the queue has deleted because of their age.
func (v view) Expired() int {
	return must1(v.world.queue.Counts(v.world.Now, v.world.queue.orders)).Expired
}

// Lab has what the worlds of one goroutine share, to save time. It is not safe for
// concurrent use.
type Lab struct {
	decoder *orders.Decoder
	pool    *stage.Pool
	rules   oracle.Rules
	decoded map[string]order.Order
	options []option
	state   []byte
	specs   map[ordertest.Call]spec
	actions map[kind]func(*World, option)
}

// NewLab returns a lab.
func NewLab() *Lab {
	return &Lab{
		decoder: orders.NewDecoder(), pool: stage.NewPool(), decoded: map[string]order.Order{},
		rules: oracle.NewRules(), specs: newSpecs(), actions: actions(),
	}
}

// order returns the order of a body. It decodes each body once.
func (l *Lab) order(body string) order.Order {
	o, known := l.decoded[body]
	if !known {
		o = must1(l.decoder.Decode(body))
		l.decoded[body] = o
	}
	return o
}

// must panics. The doubles refuse nothing that a world sends on its own.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func must1[T any](v T, err error) T { //nolint:ireturn // T is a concrete type at every call
	must(err)
	return v
}

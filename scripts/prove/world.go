// Package prove runs the real product in a small world: time is a number, each call to the outside is a step, and what can
// go wrong at a step does, in whatever order somebody chooses. The processor, the Stripe adapter, the decoder and the
// answer to the queue are the deployed ones; the store, Stripe and the queue are the ones in memory, held to the same
// contracts as the real ones.
//
// It refuses to know why the product is right. The oracle says in its own words what must be true, and shares no rule with
// the product, so that a bug cannot hide by being on both sides.
//
// Read world.go (what there is), step.go (what can happen next), worker.go (one delivery), oracle.go (what must hold) and
// scenario_test.go (which worlds are searched).
package prove

import (
	"fmt"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// The settings of the deployed system that a world keeps (infra/terraform): the function's time-out, and how long the queue
// hides what it has delivered.
const (
	functionTime = time.Minute
	confirmTime  = 15 * time.Second
	visibility   = 6 * functionTime
	callTime     = 100 * time.Millisecond // what a call takes, so that histories can be read by their times
)

// scope is this world's deployment, and the others its queues.
const (
	scope  = order.Scope("prove")
	orders = "orders"
	dead   = "orders-dead"
)

// Message is an order as a producer sends it. Quantity tells contents apart: one piece is 19.99 USD.
type Message struct {
	ID       order.ID
	Quantity int
	Method   string // a payment method of stripetest
}

func (m Message) body() string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"CUST987","currency":"usd","lines":[{"sku":"MUG","quantity":%d,"unitAmount":1999}],`+
		`"payment":{"customer":"cus_pretend","method":%q}}`, m.ID, m.Quantity, m.Method)
}

// amount is what the message asks for, in cents.
func (m Message) amount() int64 { return int64(m.Quantity) * 1999 }

// Case is how a world begins.
type Case struct {
	Name     string
	Messages []Message
	// Gap is how long after its first delivery a message comes back if nobody acknowledges it. Below the visibility
	// time-out it is a queue that delivers at least once, and now and then twice; above it, an outage or a redrive.
	Gap time.Duration
}

// World is one history in the making.
type World struct {
	Case

	choose  Choose
	decoder *sqs.Decoder
	start   time.Time
	now     time.Time
	store   ordertest.Memory
	stripe  *stripetest.Machine
	queue   *sqstest.Machine
	pay     order.Payments
	workers []*worker // alive, in the order of their births
	current *worker   // whose turn it is; nil if nobody is running
	born    int
	paused  bool           // the gap is over
	acting  int            // the message that was worked on last, by its place in the case
	numbers map[string]int // of messages, by their ids: their places in the case
	history History
	oracle  oracle
}

// New is a world in which the case's messages have been sent and nothing was delivered. Worlds may share a decoder.
func New(d *sqs.Decoder, c Case, choose Choose) *World {
	start := time.Unix(1_767_225_600, 0).UTC()
	w := &World{
		Case: c, choose: choose, decoder: d, start: start, now: start,
		stripe: stripetest.New(stripetest.Rules{}), queue: sqstest.New(1),
		numbers: map[string]int{}, oracle: newOracle(c.Messages),
	}
	w.pay = stripe.New(stripe.Options{Key: "sk_test_pretend", Scope: scope, BaseURL: "http://stripe.test", Transport: wire{w}})
	policy := sqs.DefaultPolicy()
	settings := sqstest.DefaultSettings()
	settings.Retention = policy.Retention
	must(w.queue.Create(start, dead, settings))
	settings.Visibility, settings.DeadLetters, settings.MaxReceives = visibility, dead, 50
	must(w.queue.Create(start, orders, settings))
	for i, m := range c.Messages {
		w.numbers[must1(w.queue.Send(start, orders, sqstest.Draft{Body: m.body()})).ID] = i
		w.tell("producer", fmt.Sprintf("sends message %d: order %s, %d x 19.99 USD", i+1, m.ID, m.Quantity), "")
	}
	return w
}

// Run lets the world go on until nothing is left to do or a promise is broken, and returns which one and how it came to that.
func (w *World) Run() (*Violation, History) {
	for w.oracle.broken == nil {
		ways := w.ways()
		if len(ways) == 0 {
			w.oracle.atRest(w)
			break
		}
		ways[w.choose(len(ways))]()
		w.oracle.afterStep(w)
	}
	for _, k := range w.workers {
		k.stop()
	}
	return w.oracle.broken, w.history
}

// tell adds a line to the history.
func (w *World) tell(who, what, answer string) {
	w.history = append(w.history, Line{At: w.now.Sub(w.start), Who: who, What: what, Answer: answer})
}

// must is for the pretend services of this world: it sends them nothing that they refuse.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func must1[T any](v T, err error) T { //nolint:ireturn // T is a concrete type at every call
	must(err)
	return v
}

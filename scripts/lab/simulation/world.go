// Package simulation runs the real product in a small world: time is a number, each call
// to the outside is a step, and what can go wrong at a step does, in whatever order
// somebody chooses. The processor, the decoder, the Stripe adapter and the answer to the
// queue are the deployed ones, in some worlds also the batch handler and the adapter's
// HTTP client; the store, Stripe and the queue are the ones in memory, held to the same
// contracts as the real ones.
//
// It refuses to know why the product is right. The oracle says in its own words what must
// be true. It shares the product's vocabulary (package order's statuses, reasons, records
// and ids) and neither a rule nor a number: what may follow what, what an intent means,
// which reasons are for people and every limit stand here once more, so that a bug or a
// wrong constant cannot hide by being on both sides. The content of a message, which says
// what is a conflict, the worlds know because they sent it.
//
// Read world.go (what there is), limits.go (in which limits), step.go (what can happen
// next), fault.go (what can go wrong), worker.go (one delivery), oracle.go (what must
// hold), cases.go (which worlds are searched) and random.go (which are drawn).
package simulation

import (
	"fmt"
	"strconv"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/schedule"
)

// How long calls take.
const (
	confirmTime = 15 * time.Second       // one that is given up (adapters/stripe, DefaultTimeout)
	callTime    = 100 * time.Millisecond // every other one, so that histories can be read by their times
)

// scope is this world's deployment, and the others its queues.
const (
	scope    = order.Scope("prove")
	neighbor = order.Scope("neighbor") // another deployment on the same Stripe account
	orders   = "orders"
	dead     = "orders-dead"
	fifo     = ".fifo"  // ends the name of each FIFO queue
	number   = "number" // the attribute that tells messages apart, also after a redrive has given them new ids
)

// Case is how a world begins, and what may happen in it beyond the faults of calls.
type Case struct {
	Name     string
	Messages []Message
	// Gap is how long after its first delivery a message comes back if nobody
	// acknowledges it. Below the visibility time-out it is a queue that delivers at least
	// once, and now and then twice; above it, an outage or a redrive. Beyond the queue's
	// retention the producer sends the message again.
	Gap time.Duration

	Workers  int             // how many deliveries overlap by choice; 0 is 2
	Rare     bool            // also the faults that the protocol cannot tell from others
	People   bool            // cancel, pay, refresh; and Stripe forgets its keys
	Restless bool            // the queue delivers twice and in any order; pauses; early redrives
	Mistake  bool            // a person writes an intent into a row that was made for something else
	Neighbor bool            // another deployment on the same Stripe account has an order with the same id
	Denials  bool            // one action that the function needs is denied for a while
	Releases bool            // an older release runs too: other parameters, keys and fingerprints
	Clocks   []time.Duration // how wrong a worker's clock can be
	KeyLife  time.Duration   // as in stripetest.Rules
	ListLag  time.Duration   // likewise
	Receives int             // the queue's maxReceiveCount; 0 is the deployed one
	Strict   bool            // no order may be canceled: false, for tests of the search itself
	Adapter  bool            // the Stripe adapter sends its requests through net/http
	Batch    int             // if not 0: the deployed handler, with so many messages a batch, over a pretend SQS
	FIFO     bool            // with Batch: FIFO queues, with the customer as message group
	Variety  int             // decides details that would multiply the ways if they were choices

	Consumer func() Consumer `json:"-"` // what runs instead of the product; nil is the product
}

// World is one history in the making.
type World struct {
	Case

	lab      *Lab
	choose   schedule.Choose
	start    time.Time
	now      time.Time
	store    ordertest.Memory
	stripe   *stripetest.Machine
	queue    *sqstest.Machine
	pay      *stripe.Payments
	other    Consumer // nil is the product
	policy   sqs.Policy
	workers  []*Worker // alive, in the order of their births
	current  *Worker   // whose turn it is; nil if nobody is running
	asking   *Worker   // who talks to Stripe
	born     int
	acting   int    // the message that was worked on last, by its place in the case
	late     []late // what was sent and has not arrived, or not ended
	unseen   int    // messages that the queue has never delivered
	oldest   time.Time
	paused   bool // the gap is over
	forgot   bool // Stripe has forgotten its keys
	mistaken bool
	met      bool // the neighbor has used its keys
	redriven bool // since the last disturbance

	ordersQueue, deadQueue string
	denial                 denial
	strays                 []string // intents that this deployment did not make
	deed                   deed

	recording bool
	calls     []StoreCall
	ticks     int64

	usualSteps int // since the last one that was not

	telling   bool
	history   History
	trace     trace
	tape      schedule.Tape // what was chosen
	unusual   []string      // kinds of trouble, one for each choice that is not the usual one
	receiving bool          // the queue is choosing
	oracle    oracle
	done      Tally
}

// World returns a world in which the case's messages have been sent and nothing was
// delivered.
func (l *Lab) World(c Case, choose schedule.Choose) *World {
	w := &World{
		Case: c, lab: l, choose: choose, start: dawn(), now: dawn(), oldest: dawn(), policy: sqs.DefaultPolicy(),
		stripe: stripetest.New(stripetest.Rules{KeyLife: c.KeyLife, ListLag: c.ListLag}), queue: sqstest.New(1),
		ordersQueue: orders, deadQueue: dead,
	}
	w.oracle = newOracle(c.Messages)
	options := stripe.Options{Key: apiKey, Scope: scope, Exchange: w.exchange}
	if c.Adapter {
		options = stripe.Options{Key: apiKey, Scope: scope, BaseURL: "http://stripe.test", Transport: wire{w}}
	}
	w.pay = stripe.New(options)
	if c.Restless {
		w.queue.Pick = w.receives
	}
	if c.Consumer != nil {
		w.other = c.Consumer()
	}
	w.makeQueues()
	return w
}

// Bounds of a world that goes on as usual. The longest ones of the product need some
// hundred steps.
const (
	mostUsualSteps = 3000
	mostStepsAfter = 100 // a rule was broken: for what comes of it
)

// restless counts the usual steps, and reports whether they are too many: nothing goes
// wrong any more, and yet it does not end.
func (w *World) restless() bool {
	w.usualSteps++
	if w.done.Steps > 0 && len(w.tape) > 0 && w.tape[len(w.tape)-1] != 0 || w.denying() {
		w.usualSteps = 0
	}
	if w.oracle.noticed != nil && w.done.Steps > w.oracle.noticedStep+mostStepsAfter {
		return true
	}
	w.oracle.must(
		w.usualSteps <= mostUsualSteps, SettlesSoon, w.Messages[0].ID,
		"nothing goes wrong any more, and after %d steps it has not ended", w.usualSteps,
	)
	return w.oracle.broken != nil
}

// receives picks what the queue delivers next.
func (w *World) receives(n int) int {
	w.receiving = true
	i := w.pick(n)
	w.receiving = false
	if i > 0 {
		w.unusual = append(w.unusual, outOfOrder)
	}
	return i
}

func (w *World) makeQueues() {
	settings := sqstest.DefaultSettings()
	if w.FIFO {
		w.ordersQueue, w.deadQueue, settings.FIFO = orders+fifo, dead+fifo, true
	}
	settings.Retention = deadRetention
	must(w.queue.Create(w.start, w.deadQueue, settings))
	settings.Retention, settings.MaxReceives = retention, maxReceives
	settings.Visibility, settings.DeadLetters = visibility, w.deadQueue
	if w.Receives > 0 {
		settings.MaxReceives = w.Receives
	}
	must(w.queue.Create(w.start, w.ordersQueue, settings))
}

// dawn is when worlds begin. It lies far ahead because contexts know only the real clock.
func dawn() time.Time { return time.Unix(5_000_000_000, 0).UTC() }

// Tell makes the world write its history.
func (w *World) Tell() *World {
	w.telling = true
	return w
}

// Run lets the world go on until nothing is left to do or a promise is broken, and
// returns which one.
func (w *World) Run() *Violation { return w.RunUntil(func() bool { return false }) }

// RunUntil is Run that may be given up: over is asked before each choice.
func (w *World) RunUntil(over func() bool) *Violation {
	for i := range w.Messages {
		w.send(i)
	}
	for w.oracle.broken == nil {
		ways := w.ways()
		if len(ways) == 0 {
			w.oracle.atRest(w)
			break
		}
		if over() || w.restless() {
			break
		}
		i := w.pick(len(ways))
		w.done.step(ways[i])
		if i > 0 {
			w.unusual = append(w.unusual, w.trouble(ways[i]))
		}
		w.take(ways[i])
		w.oracle.afterStep(w)
	}
	for _, k := range w.workers {
		k.stop()
	}
	w.trace.number(w.now.UnixNano())
	w.oracle.conclude(w)
	return w.oracle.broken
}

// History is what has happened, if the world was told to write it.
func (w *World) History() History { return w.history }

// Tape is what was chosen so far.
func (w *World) Tape() schedule.Tape { return w.tape }

// Trace is a number that two runs share if the same happened in them.
func (w *World) Trace() uint64 { return uint64(w.trace) }

// pick asks the chooser, and notes what it said.
func (w *World) pick(n int) int {
	i := w.choose(n)
	w.tape = append(w.tape, byte(i)) //nolint:gosec // G115: there are never so many ways
	w.trace.number(int64(i))
	w.trace.number(int64(n))
	return i
}

func (w *World) send(i int) {
	m := &w.Messages[i]
	draft := sqstest.Draft{Body: m.body(), Attributes: w.lab.numbered(i)}
	if w.FIFO {
		draft.Group, draft.DeduplicationID = m.group(), fmt.Sprintf("%d-%d", i, w.now.UnixNano())
	}
	must1(w.queue.Send(w.now, w.ordersQueue, draft))
	w.unseen++
	if w.telling {
		if m.Poison != "" {
			w.tell("producer", "queue", fmt.Sprintf("sends message %d, which is no order: %s", i+1, m.Poison), "")
			return
		}
		w.tell("producer", "queue", fmt.Sprintf("sends message %d: %s", i+1, m), "")
	}
}

// numberOf is a message's place in the case.
func numberOf(m sqstest.Message) int { return must1(strconv.Atoi(m.Attributes[number].Text)) }

// Lab is what worlds of one goroutine share, to save work. It is not safe for concurrent
// use.
type Lab struct {
	decoder *sqs.Decoder
	decoded map[string]order.Order
	marks   []map[string]sqstest.Attribute
	ways    []way
	state   []byte
	rules   []rule
}

// NewLab returns a lab.
func NewLab() *Lab {
	return &Lab{decoder: sqs.NewDecoder(), decoded: map[string]order.Order{}, rules: rules()}
}

// order decodes a body once; a world decodes the same ones all the time.
func (l *Lab) order(body string) order.Order {
	o, known := l.decoded[body]
	if !known {
		o = must1(l.decoder.Decode(body))
		l.decoded[body] = o
	}
	return o
}

func (l *Lab) numbered(i int) map[string]sqstest.Attribute {
	for len(l.marks) <= i {
		l.marks = append(
			l.marks,
			map[string]sqstest.Attribute{number: {Type: "Number", Text: strconv.Itoa(len(l.marks))}},
		)
	}
	return l.marks[i]
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

package oracle

import (
	"encoding/binary"
	"strings"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// View is what the oracle can read of a world.
type View interface {
	// Now returns the time of the world.
	Now() time.Time
	// Row returns the record of an order, and whether there is one.
	Row(id order.ID) (order.Record, bool)
	// Stripe returns Stripe's side of the books.
	Stripe() Stripe
	// Expired returns how many messages the queue has deleted because of their age.
	Expired() int
}

// Stripe is the readable part of *stripetest.Machine.
type Stripe interface {
	Intent(id string) *stripetest.Intent
	Intents() []*stripetest.Intent
	Ledger() []stripetest.Charge
	Attempts() int
}

// Sent is a message that the producer sent. Messages with the same ID are a conflict
// unless they are equal.
type Sent struct {
	ID       order.ID
	Body     string
	Customer string // the producer's id of the customer
	Payer    string // Stripe's id of the customer
	Amount   int64
	Currency string
}

// Delivery is one receive of a message.
type Delivery struct {
	Message   int    // its place among the messages that were sent
	ID        string // SQS's, which changes with a redrive
	Receives  int
	Sent      time.Time
	FirstSent string // RFC 3339; when a redriven message was first sent, else ""
	Group     string // of a FIFO queue, else ""
}

// The calls that ordertest does not name.
const (
	Reply  ordertest.Call = "reply"  // the decision about a message
	Park   ordertest.Call = "park"   // SendMessage of the handler, to the dead-letter queue
	Return ordertest.Call = "return" // ChangeMessageVisibility of the handler
	Settle ordertest.Call = "settle"
	Due    ordertest.Call = "due"    // the reconciler's look into the index
	Answer ordertest.Call = "answer" // the webhook endpoint's response to Stripe
	Put    ordertest.Call = "put"    // of events, to the bus
	// Checkpoint is a publisher's response to the table's stream.
	Checkpoint ordertest.Call = "checkpoint"
)

// Call is a call of a worker to the table, to Stripe or to the queue.
type Call struct {
	Name            ordertest.Call
	Subject, Detail string
}

// ToStripe reports whether the call is a request to Stripe.
func (c Call) ToStripe() bool {
	return c.Name == ordertest.Prepare || c.Name == ordertest.Confirm || c.Name == ordertest.Read ||
		c.Name == ordertest.Find || c.Name == ordertest.Cancel
}

// ToQueue reports whether the call is a request to the queue.
func (c Call) ToQueue() bool { return c.Name == Reply || c.Name == Park || c.Name == Return }

// Worker is what the oracle remembers of one delivery, or of one operator.
type Worker struct {
	Name    string
	Begun   time.Time // by its own clock
	Old     bool      // it runs an older release
	Absurd  bool      // its clock is further off than HonestSkew
	Cancels bool      // it is an operator who cancels an order

	known   knowledge
	calls   int  // to the table and to Stripe
	settled bool // its order was settled when it began
}

// AppendState appends what the oracle remembers of the worker, except for what follows
// from the responses that the worker has received.
func (k *Worker) AppendState(b []byte) []byte {
	return binary.AppendVarint(b, int64(k.calls)<<1|bit(k.settled))
}

func (k *Worker) owns(owner string) bool {
	rest, is := strings.CutPrefix(owner, "owner-"+k.Name)
	return is && (rest == "" || rest[0] == '-')
}

// Cause is what changes the world in a step: a worker's call, with what the worker knew
// when it made it. The zero Cause is a change that no worker made.
type Cause struct {
	by    *Worker
	call  Call
	at    time.Time // by the worker's clock
	known knowledge
}

// Cause returns the cause of what the worker's next call changes.
func (k *Worker) Cause(c Call, at time.Time) Cause {
	return Cause{by: k, call: c, at: at, known: k.known}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Day is 24 hours.
const Day = 24 * time.Hour

// The limits of the deployment, each from a source outside the product. Packages order
// and sqs have constants of their own, so the oracle detects a wrong one there.
const (
	FunctionTime  = time.Minute      // function timeout, within variables.tf of infra/terraform
	Visibility    = 6 * FunctionTime // visibility timeout: the minimum of queue.tf
	MaxReceives   = 1000             // deliveries after which the queue parks without a reason (order.tf)
	Retention     = 7 * Day          // of the queue (queue.tf)
	DeadRetention = 14 * Day         // of the dead-letter queue (queue.tf)

	// From docs/design.md, "What each answer means".
	LastDay     = Day // a message this close to its retention is parked, whatever it waits for
	maxFailures = 20  // deliveries after which an order that fails without an outage is parked

	// lastChances is how many deliveries before the queue parks a message the code may
	// park it. No document gives the number. With only one, a worker that dies would
	// leave a dead letter without a reason.
	lastChances = 10

	// HonestSkew is the largest error of an honest clock, because AWS rejects requests
	// that are signed further off. IAM user guide, "Signature Version 4": "a request must
	// reach AWS within five minutes of the time stamp in the request".
	HonestSkew = 5 * time.Minute

	// longestRun is the longest run of a function, and so the longest lease (Lambda
	// developer guide, "Lambda quotas": 900 seconds).
	longestRun = 15 * time.Minute

	// ConfirmTime is how long a confirmation may take (adapters/stripe, DefaultTimeout).
	ConfirmTime = 15 * time.Second

	// maxDeliveries is how many deliveries a message may need when nothing goes wrong.
	maxDeliveries = 2

	// maxSteps is how many steps a world may take without a deviation. The longest orders
	// need some hundred.
	maxSteps = 3000

	// stepsAfterNote is how many steps a world continues after a noted violation, because
	// a more serious one may follow.
	stepsAfterNote = 100
)

// recheckAfter returns how long after its last change an order is due in the index
// (docs/reference/row.md, "Index open").
func recheckAfter(s order.Status) (after time.Duration, waits bool) {
	switch s {
	case order.Open:
		return 15 * time.Minute, true
	case order.Pending:
		return time.Hour, true
	case order.ActionRequired, order.Declined:
		return Day, true
	case order.Paid, order.Canceled, order.Refused, order.PartiallyRefunded, order.Refunded, order.OutOfStock:
	}
	return 0, false
}

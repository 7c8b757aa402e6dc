package refunds

import (
	"fmt"
	"strings"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/scripts/lab/stage"
)

// Class is what may happen in a world.
type Class string

// The classes of worlds.
const (
	// Kind worlds have what a month in production has: workers die, answers are lost,
	// 500s are stored. Nothing takes longer than an hour, except that a message may wait
	// for days.
	Kind Class = "kind"
	// Worst worlds have what Stripe, Lambda and clocks do not exclude: workers freeze and
	// requests wait for up to six days, clocks are wrong, lists lag.
	Worst Class = "worst"
	// Keyless worlds are worst worlds in which Stripe forgets each key at once, and every
	// refund is big.
	Keyless Class = "keyless"
	// Aged worlds are worst worlds of one small refund whose message comes back when
	// Stripe may have forgotten its key. They reach in each world the rules that the
	// others reach in one of thousands.
	Aged Class = "aged"
)

// Classes returns every class.
func Classes() []Class { return []Class{Kind, Worst, Keyless, Aged} }

// Case is a world before anything has happened in it.
type Case struct {
	Class    Class
	Orders   []Order
	Messages []refund.Request
	Takes    bool          // refunds are pending first
	Lag      time.Duration // of Stripe's list
	Keeps    bool          // Stripe keeps refusals under their keys too
	Trouble  [deviationKinds]bool
	Faults   []stage.Fault // of calls
	Complete bool          // every schedule of few faults is searched, so that no option appears twice
}

// Order is an order of a case.
type Order struct {
	ID       order.ID
	Amount   int64
	Currency string
	Declined bool // the card
	Late     bool // it is charged while refunds and cancels arrive, not before
}

// order returns the order as a producer sends it.
func (o Order) order() (order.Order, error) {
	d := ordertest.Draft(o.ID)
	d.Currency, d.Lines = o.Currency, []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: o.Amount}}
	if o.Declined {
		d.Payment.Method = ordertest.PaymentMethod(ordertest.Declines)
	}
	return order.New(d)
}

func newRequest(o Order, id string, amount int64) refund.Request {
	return must(refund.New(refund.Draft{
		OrderID: string(o.ID), RefundID: id, Amount: amount, Reason: string(refund.RequestedByCustomer),
	}))
}

//nolint:ireturn // T is a struct at every call
func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // a bug in this package
	}
	return v
}

// String describes the case in a line.
func (c Case) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "a %s world:", c.Class)
	for _, o := range c.Orders {
		fmt.Fprintf(&b, " %s of %d %s", o.ID, o.Amount, o.Currency)
		if o.Late {
			b.WriteString(" (not charged yet)")
		}
		b.WriteString(";")
	}
	for n, m := range c.Messages {
		fmt.Fprintf(&b, " message %d: refund %s of %s, %d;", n+1, m.ID(), m.OrderID(), m.Amount())
	}
	if c.Lag > 0 {
		fmt.Fprintf(&b, " lists lag %v;", c.Lag)
	}
	if c.Takes {
		b.WriteString(" refunds are pending first;")
	}
	if c.Keeps {
		b.WriteString(" keys keep refusals;")
	}
	return strings.TrimSuffix(b.String(), ";")
}

package refunds

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
)

// Class says what may happen in a world.
type Class string

// The classes of worlds.
const (
	// Kind worlds have what a month in production has: workers die, answers are lost, 500s
	// are stored. Nothing takes longer than an hour, except that a message may wait for days.
	Kind Class = "kind"
	// Worst worlds have what Stripe, Lambda and clocks do not exclude: workers freeze and
	// requests wait for up to six days, clocks are wrong, lists lag.
	Worst Class = "worst"
	// Keyless worlds are worst worlds in which Stripe forgets each key at once, and every
	// refund is big.
	Keyless Class = "keyless"
)

// Classes returns every class.
func Classes() []Class { return []Class{Kind, Worst, Keyless} }

// Case is a world before anything has happened in it.
type Case struct {
	Class    Class
	Orders   []Order
	Messages []refund.Request
	Takes    bool          // refunds are pending first
	Lag      time.Duration // of Stripe's list
	Trouble  [deviationKinds]bool
	Faults   []fault // of calls
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

// drawCase returns the case of a random world.
func drawCase(r *rand.Rand, class Class) Case {
	c := Case{Class: class, Takes: oneIn(r, 4)}
	if class != Kind {
		c.Lag = []time.Duration{0, time.Minute, 14 * time.Hour}[r.IntN(3)]
	}
	for kind := range c.Trouble {
		c.Trouble[kind] = deviation(kind) == fails || !oneIn(r, 3)
	}
	for _, f := range create.faults() { // it has all of them
		if oneIn(r, 2) {
			c.Faults = append(c.Faults, f)
		}
	}
	for n := range []int{1, 1, 1, 1, 1, 1, 2, 3}[r.IntN(8)] {
		o := Order{
			ID: order.ID("ORD-" + strconv.Itoa(n+1)), Currency: []string{"usd", "eur", "jpy"}[r.IntN(3)],
			Amount: []int64{3998, 5001, 5000}[r.IntN(3)], Declined: oneIn(r, 32), Late: oneIn(r, 4),
		}
		c.Orders = append(c.Orders, o)
		c.Messages = append(c.Messages, drawMessages(r, o, class)...)
	}
	r.Shuffle(len(c.Messages), func(i, j int) { c.Messages[i], c.Messages[j] = c.Messages[j], c.Messages[i] })
	return c
}

// drawMessages returns one to four refunds of an order. Each is sent up to three times,
// sometimes with another content.
func drawMessages(r *rand.Rand, o Order, class Class) (all []refund.Request) {
	half := o.Amount / 2
	amounts := []int64{o.Amount, half + 1}
	if class != Keyless {
		amounts = append(amounts, half, half, o.Amount/3)
	}
	for n := range []int{1, 1, 2, 2, 2, 3, 4}[r.IntN(7)] {
		id := "R" + strconv.Itoa(n+1)
		m := newRequest(o, id, amounts[r.IntN(len(amounts))])
		for range []int{1, 1, 2, 3}[r.IntN(4)] {
			all = append(all, m)
			if oneIn(r, 16) {
				all = append(all, newRequest(o, id, amounts[r.IntN(len(amounts))]))
			}
		}
	}
	return all
}

func newRequest(o Order, id string, amount int64) refund.Request {
	d := refund.Draft{OrderID: string(o.ID), RefundID: id, Amount: amount, Reason: string(refund.RequestedByCustomer)}
	return must(refund.New(d))
}

func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

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
	return strings.TrimSuffix(b.String(), ";")
}

package refunds

import (
	"strconv"
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
	Name     string // of one of Every
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

// Every returns the cases of which every schedule with few faults is searched. All that
// may happen in the worst worlds may happen in them. Their order is charged 39.98 USD.
func Every() (all []Case) {
	const whole, big, small = int64(3998), int64(2000), int64(1999)
	paid := Order{ID: "ORD-1", Amount: whole, Currency: "usd"}
	late, declined := paid, paid
	late.Late, declined.Late, declined.Declined = true, true, true
	add := func(name string, o Order, amounts ...int64) *Case { // each under an id of its own
		c := Case{Name: name, Class: Worst, Complete: true, Orders: []Order{o}, Faults: create.faults()}
		for kind := range c.Trouble {
			c.Trouble[kind] = true
		}
		for n, amount := range amounts {
			c.Messages = append(c.Messages, newRequest(o, "R"+strconv.Itoa(n+1), amount))
		}
		all = append(all, c)
		return &all[len(all)-1]
	}
	again := func(c *Case, amount int64) { c.Messages = append(c.Messages, newRequest(paid, "R1", amount)) }
	add("a big refund", paid, big)
	add("a small refund", paid, small)
	add("a big refund without keys", paid, big).Class = Keyless
	add("a refund that is pending first", paid, small).Takes = true
	add("a small refund and a list that lags", paid, small).Lag = 14 * time.Hour
	add("a small refund and keys that keep refusals", paid, small).Keeps = true
	add("a refund of an order that is not charged yet", late, small)
	add("a refund of an order whose card is declined", declined, small)
	again(add("a big refund, sent twice", paid, big), big)
	again(add("a small refund, sent twice", paid, small), small)
	again(add("two contents under one id", paid, small), big)
	add("two small refunds", paid, small, small)
	add("two refunds of more than the charge", paid, big, big)
	return all
}

// Order is an order of a case.
type Order struct {
	ID       order.ID
	Amount   int64
	Currency string
	Declined bool // the card
	Late     bool // it is charged while refunds and cancels arrive, not before
}

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

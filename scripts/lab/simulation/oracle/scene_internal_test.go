package oracle

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/stage"
)

const (
	scope     = order.Scope("prove")
	apiKey    = "sk_test_pretend"
	visa      = "pm_card_visa"
	declined  = "pm_card_chargeDeclined"
	takesDays = "pm_usBankAccount_processing"
)

func start() time.Time { return time.Unix(5_000_000_000, 0).UTC() }

// sale is an order of mugs for 19.99 each, or a message that is not an order.
type sale struct {
	id       order.ID
	quantity int64
	method   string
	poison   bool
}

func sold(method string) sale { return sale{id: "ORD-1", quantity: 2, method: method} }

func (s sale) order(t *testing.T, currency string) order.Order {
	t.Helper()
	d := ordertest.Draft(s.id)
	d.Currency, d.Payment.Method = currency, s.method
	d.Lines = []order.Line{{SKU: "MUG", Quantity: s.quantity, UnitAmount: 1999}}
	o, err := order.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (s sale) sent() Sent {
	return Sent{
		ID: s.id, Body: fmt.Sprint(s), Customer: "CUST987", Payer: "cus_pretend", Amount: 1999 * s.quantity,
		Currency: "usd", Payable: s.method == visa,
	}
}

// setup is how a scene begins.
type setup struct {
	sales   []sale
	subject Subject
}

func one(methods ...string) setup {
	var s setup
	for _, m := range methods {
		s.sales = append(s.sales, sold(m))
	}
	return s
}

// twoContents is one order id with two contents.
func twoContents() setup {
	s := one(visa, visa)
	s.sales[1].quantity = 3
	return s
}

// scene is an oracle with a real store and a real Stripe double. A test does what the
// product would do, and what it must not do.
type scene struct {
	t          *testing.T
	oracle     *Oracle
	now        time.Time
	store      *ordertest.Memory
	stripe     *stripetest.Machine
	adapter    *charge.Payments
	sales      []sale
	deliveries []Delivery // the first one of each message
	worker     *Worker
	expired    int
	message    int // worked on last
	keys       int
}

func newScene(t *testing.T, s setup) *scene {
	t.Helper()
	c := &scene{
		t: t, now: start(), store: new(ordertest.Memory), stripe: stripetest.New(stripetest.Rules{}),
		sales: s.sales, worker: &Worker{Name: "A"},
	}
	c.adapter = charge.New(stripe.Options{Key: apiKey, Scope: scope, Exchange: c.exchange})
	var sent []Sent
	for i, one := range s.sales {
		sent = append(sent, one.sent())
		c.deliveries = append(c.deliveries, Delivery{Message: i, ID: fmt.Sprint(i), Receives: 1, Sent: c.now})
	}
	c.oracle = New(c, NewRules(), s.subject, sent)
	return c
}

var _ View = (*scene)(nil)

func (c *scene) Now() time.Time { return c.now }

func (c *scene) Row(id order.ID) (order.Record, bool) { return c.store.Peek(id) }

func (c *scene) Stripe() Stripe { return c.stripe } //nolint:ireturn // as in View

func (c *scene) Expired() int { return c.expired }

func (c *scene) exchange(_ context.Context, r stripe.Request) (stripe.Response, error) {
	out := c.stripe.Do(c.now, stripetest.Request{Method: r.Method, Path: r.Path, APIKey: apiKey, Key: r.Key, Form: r.Params})
	return stripe.Response{Status: out.Status, Header: out.Header(), Body: out.Body()}, nil
}

// must ends the test if the scene itself is wrong.
func (c *scene) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// step lets the oracle check, as after every step.
func (c *scene) step() { c.oracle.AfterStep(c.message, Cause{}) }

// rest lets the oracle check, as when nothing is left to do.
func (c *scene) rest() {
	c.step()
	c.oracle.AtRest()
}

func (c *scene) order(i int) order.Order {
	c.t.Helper()
	return c.sales[i].order(c.t, "usd")
}

func (c *scene) claim(i int) order.Claim {
	c.t.Helper()
	c.message = i
	lease := order.Lease{Owner: "hand", From: c.now, Until: c.now.Add(FunctionTime)}
	claim, err := order.Begin(c.t.Context(), c.store, c.order(i), lease, nil)
	c.must(err)
	return claim
}

// begin is a step that claims a message's order.
func (c *scene) begin() order.Claim {
	c.t.Helper()
	claim := c.claim(0)
	c.step()
	return claim
}

// prepare creates a new intent for an order.
func (c *scene) prepare(o order.Order) order.IntentID {
	c.t.Helper()
	c.keys++
	i, err := c.adapter.Prepare(c.t.Context(), o, order.PrepareAgainKey(scope, o.ID(), c.keys))
	c.must(err)
	return i.ID
}

// confirm charges an intent, or is declined.
func (c *scene) confirm(id order.IntentID) order.IntentID {
	c.t.Helper()
	c.keys++
	_, err := c.adapter.Confirm(c.t.Context(), id, order.ConfirmKey(scope, "any", c.keys))
	c.must(err)
	return id
}

// charge creates an intent for a message's order and confirms it.
func (c *scene) charge(i int) order.IntentID {
	c.t.Helper()
	return c.confirm(c.prepare(c.order(i)))
}

// write writes an intent and a status into the row of a claim.
func (c *scene) write(claim order.Claim, id order.IntentID, s order.Status) {
	c.t.Helper()
	ctx := c.t.Context()
	c.must(claim.Bind(ctx, c.store, order.Intent{ID: id}, c.now))
	if s != order.Open {
		c.must(claim.Finish(ctx, c.store, order.Outcome{Status: s, Intent: id}, c.now))
	}
}

// settlePaid writes into a settled row that the order is paid.
func (c *scene) settlePaid() {
	c.t.Helper()
	r, _ := c.store.Peek("ORD-1")
	c.must(order.Settle(c.t.Context(), c.store, r, order.Outcome{Status: order.Paid, Intent: r.Intent}, c.now))
}

// cancelOrder closes an order without an intent, as an operator does.
func (c *scene) cancelOrder() {
	c.t.Helper()
	r, _ := c.store.Peek("ORD-1")
	canceled := order.Outcome{Status: order.Canceled, Failure: canceledByOperator}
	c.must(order.Settle(c.t.Context(), c.store, r, canceled, c.now))
	c.step()
}

// payOrder does all that a paid order needs.
func (c *scene) payOrder() {
	c.t.Helper()
	c.write(c.begin(), c.charge(0), order.Paid)
	c.step()
}

// clearTable empties the table, so that a test can write what no store would write over
// the old row.
func (c *scene) clearTable() { c.store = new(ordertest.Memory) }

func (c *scene) park(i int, why order.Reason) { c.oracle.Parked(c.worker, c.deliveries[i], why) }

// either returns yes if the scene is right, else no.
func either[T any](right bool, yes, no T) T { //nolint:ireturn // T is a concrete type
	if right {
		return yes
	}
	return no
}

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wants reports whether a violation is of the invariant and contains the text.
func wants(got *stage.Violation, i stage.Invariant, text string) bool {
	return got != nil && got.Invariant == i && strings.Contains(got.Detail, text)
}

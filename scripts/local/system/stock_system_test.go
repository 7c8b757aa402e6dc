package system_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// The article of body, of which an order has two pieces.
const shirt = "TSHIRT-M"

// TestStockOfTheCompiledFunctions runs the compiled functions with a stock table. settle
// audits I22 each time: no piece is lost or sold twice, and none is held by an order that
// can no longer be paid.
func TestStockOfTheCompiledFunctions(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	for claim, test := range map[string]func(*testing.T){
		"of 1,000 orders for the last 100 items 100 are paid and 900 out of stock": w.lastHundred,
		"an order with goods costs as many calls as one without":                   w.countsCallsWithStock,
		"killed before and after every call of a paid order":                       w.killedWithStock("pm_card_visa", 2, order.Paid, 3),
		"killed before and after every call of a declined order": w.killedWithStock(
			"pm_card_chargeDeclined", 2, order.Canceled, 7,
		),
		"killed before and after every call of an order that is out of stock":          w.killedWithStock("pm_card_visa", 1, order.OutOfStock, 3),
		"killed before and after every call of a run that frees goods":                 w.killedFreeing,
		"goods of an order that waits for its customer are freed, or sold, by the end": w.waitingWithStock,
		"an old message of a released or sold order changes no stock":                  w.redeliveredWithStock,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// stocked returns the options of a system with so many shirts.
func stocked(pieces int64, o system.Options) system.Options {
	o.Stock = map[string]int64{shirt: pieces}
	return o
}

func (o *running) wantShirts(b invariants.Books, available, reserved, sold int64) {
	o.t.Helper()
	want := order.Stock{SKU: shirt, Available: available, Reserved: reserved, Sold: sold}
	if diff := cmp.Diff(want, b.Stock[shirt]); diff != "" {
		o.t.Errorf("stock (-want +got):\n%s", diff)
	}
}

func (w world) lastHundred(t *testing.T) {
	t.Helper()
	const orders, items = 1000, 100
	s := w.start(t, stocked(items, system.Options{
		Instances: 8, FunctionTimeout: 10 * time.Second, Visibility: 12 * time.Second, Duplicate: everyTenth(),
	}))
	bodies := make([]string, 0, orders)
	for i := range orders {
		one := strings.Replace(body(fmt.Sprintf("order-%04d", i)), `"quantity":2`, `"quantity":1`, 1)
		bodies = append(bodies, one)
	}
	s.post(bodies...)
	b := s.settle()
	got, charges := map[order.Status]int{}, 0
	for id, r := range b.Orders {
		got[r.Status]++
		charges += len(b.Charges[id])
	}
	if diff := cmp.Diff(map[order.Status]int{order.Paid: items, order.OutOfStock: orders - items}, got); diff != "" {
		t.Errorf("orders by status (-want +got):\n%s", diff)
	}
	if intents := len(b.Intents); charges != items || intents != items {
		t.Errorf("got %d charges and %d intents, want %d: none for an order without goods", charges, intents, items)
	}
	s.wantShirts(b, 0, 0, items)
}

func (w world) countsCallsWithStock(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(stocked(6, system.Options{})))
	for _, step := range []struct {
		claim, body    string
		dynamo, stripe int
	}{
		{"a fresh order", body("fresh"), 3, 2},
		{"its duplicate", body("fresh"), 1, 0},
		{"a declined order: four calls and three of Stripe more", bodyWith("declined", "pm_card_chargeDeclined"), 7, 5},
		{"an order that waits for its customer", bodyWith("asked", "pm_card_authenticationRequired"), 3, 2},
		{"the last goods", body("last"), 3, 2},
		{"an order without goods", body("late"), 3, 0},
		{"its duplicate", body("late"), 1, 0},
	} {
		s.Proxy.Reset()
		before := len(s.Stripe.Calls())
		s.post(step.body)
		s.settle()
		if dynamo, stripe := s.Proxy.Total(), len(s.Stripe.Calls())-before; dynamo != step.dynamo || stripe != step.stripe {
			t.Errorf("%s: %d DynamoDB calls (%v) and %d of Stripe, want %d and %d",
				step.claim, dynamo, s.Proxy.Counts(), stripe, step.dynamo, step.stripe)
		}
	}
	s.wantShirts(s.settle(), 0, 2, 4)
}

// killedWithStock kills the function at each of its calls of one order, with so many
// pieces in stock.
func (w world) killedWithStock(method string, pieces int64, want order.Status, calls int) func(*testing.T) {
	endpoints := []stripetest.Endpoint{"", stripetest.Create, stripetest.Confirm, stripetest.Read, stripetest.Cancel}
	return func(t *testing.T) {
		t.Helper()
		for _, when := range []string{"before", "after"} {
			for at := range calls + len(endpoints) - 1 {
				number, endpoint := at+1, stripetest.Endpoint("")
				if at >= calls {
					number, endpoint = 0, endpoints[at-calls+1]
				}
				if endpoint != "" && (want == order.OutOfStock || want == order.Paid && at-calls >= 2) {
					continue // no such call
				}
				t.Run(fmt.Sprintf("%s call %d%s", when, number, endpoint), func(t *testing.T) {
					t.Parallel()
					s := w.killedOnce(t, when, number, endpoint, stocked(pieces, system.Options{}))
					s.post(bodyWith("killed", method))
					b := s.settle()
					sold := int64(0)
					if want == order.Paid {
						sold = pieces
					}
					s.wantShirts(b, pieces-sold, 0, sold)
					if r := b.Orders["killed"]; r.Status != want || len(b.Charges["killed"]) != int(sold/2) {
						t.Errorf("got %s with %d charges, want %s", r.Status, len(b.Charges["killed"]), want)
					}
					if !s.trap.sprung.Load() {
						t.Error("nothing was killed")
					}
				})
			}
		}
	}
}

// trapped is a system whose function is killed once.
type trapped struct {
	*running
	trap *trap
}

// killedOnce starts a system whose function is killed before or after a call to DynamoDB,
// by number, or to Stripe.
func (w world) killedOnce(
	t *testing.T, when string, number int, endpoint stripetest.Endpoint, o system.Options,
) trapped {
	t.Helper()
	k := &trap{}
	dynamo := func(c dynamodbtest.Call) {
		if number != 0 && c.Number == number {
			k.spring()
		}
	}
	stripe := func(c stripetest.Call) {
		if c.Endpoint == endpoint {
			k.spring()
		}
	}
	o = quick(o)
	if when == "before" {
		o.BeforeStripe = stripe
	} else {
		o.AfterStripe = stripe
	}
	s := w.start(t, o)
	k.system.Store(s.System)
	if when == "before" {
		s.Proxy.Before(dynamo)
	} else {
		s.Proxy.After(dynamo)
	}
	return trapped{s, k}
}

// killedFreeing kills the function of the schedule at each call to DynamoDB of a run that
// frees the goods of an order, and runs it again.
func (w world) killedFreeing(t *testing.T) {
	t.Helper()
	reconcile := w.Build(t, "functions/reconcile")
	for _, when := range []string{"before", "after"} {
		for number := 1; number <= 20; number++ { // 16 pages of the index, and four calls of the look
			t.Run(fmt.Sprintf("%s call %d", when, number), func(t *testing.T) {
				t.Parallel()
				s := w.start(t, stocked(2, system.Options{
					Reconcile: reconcile, Env: map[string]string{"STOCK_HOLD": "1ns"},
				}))
				s.post(bodyWith("asked", "pm_card_authenticationRequired"))
				s.wantShirts(s.settle(), 0, 2, 0)
				var sprung atomic.Bool
				kill := func(c dynamodbtest.Call) {
					if c.Number == number && sprung.CompareAndSwap(false, true) {
						s.Reconcile.Kill(nil)
					}
				}
				s.Proxy.Reset()
				if when == "before" {
					s.Proxy.Before(kill)
				} else {
					s.Proxy.After(kill)
				}
				_ = s.Look(t.Context()) // it is killed
				must(t, s.Look(t.Context()))
				b := s.settle()
				s.wantShirts(b, 2, 0, 0)
				if r := b.Orders["asked"]; r.Status != order.Canceled || !sprung.Load() {
					t.Errorf("got %s, killed: %t, want %s after a kill", r.Status, sprung.Load(), order.Canceled)
				}
			})
		}
	}
}

// waitingWithStock has orders that end later: paid by a webhook, freed by the schedule,
// or still waiting for the bank.
func (w world) waitingWithStock(t *testing.T) {
	t.Helper()
	s := w.start(t, stocked(8, system.Options{
		Reconcile: w.Build(t, "functions/reconcile"), Webhook: w.Build(t, "functions/webhook"),
		Env: map[string]string{"STOCK_HOLD": "1ns"},
	}))
	s.post(
		bodyWith("pays", "pm_card_authenticationRequired"), bodyWith("leaves", "pm_card_authenticationRequired"),
		bodyWith("pending", "pm_usBankAccount_processing"), bodyWith("clears", "pm_usBankAccount_processing"),
	)
	b := s.settle()
	s.wantShirts(b, 0, 8, 0)
	s.Stripe.Machine(func(m *stripetest.Machine) {
		must(t, m.CustomerPays(s.Stripe.Now(), string(b.Orders["pays"].Intent)))
		must(t, m.Settle(s.Stripe.Now(), string(b.Orders["clears"].Intent), true))
	})
	must(t, s.Heard(t.Context()))
	must(t, s.Look(t.Context()))
	b = s.settle()
	s.wantShirts(b, 2, 2, 4)
	for id, want := range map[order.ID]order.Status{
		"pays": order.Paid, "leaves": order.Canceled, "pending": order.Pending, "clears": order.Paid,
	} {
		if got := b.Orders[id].Status; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
}

func (w world) redeliveredWithStock(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(stocked(4, system.Options{})))
	bodies := []string{body("paid"), bodyWith("declined", "pm_card_chargeDeclined")}
	for range 3 {
		s.post(bodies...)
		s.wantShirts(s.settle(), 2, 0, 2)
		s.Advance(5 * 24 * time.Hour)
	}
	s.post(body("last"), body("late"))
	s.settle()
	s.post(body("last"), body("late"))
	s.wantShirts(s.settle(), 0, 0, 4)
}

package system_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestKilled kills the worker before and after each call of an order that is paid, of one
// that is declined and frees its shirts, and of a refund of half of the charge, and
// delivers the message again after an hour or 20 days. An order is charged once in every
// case, and a refund made at most once. The searches of the lab also execute the requests
// that were lost, and have a Stripe without idempotency keys.
func TestKilled(t *testing.T) {
	t.Parallel()
	o := incidents.Unhurried(stocked(1000, system.Options{}))
	o.Visibility = 10 * time.Minute // until the clock is moved
	k := newTrap(t, world{systemtest.New(t)}, o)
	for _, later := range []time.Duration{time.Hour, 20 * day} {
		cells := cellsOf(later)
		k.killEach(cells)
		k.deliverAgain(cells, later)
		k.compare(cells)
	}
}

// cell is one order or refund, of an order of its own, and where its worker dies.
type cell struct {
	what  string
	at    point
	later time.Duration // when the message comes again
}

// What is processed.
const (
	paidOrder     = "paid"
	declinedOrder = "declined"
	smallRefund   = "refund"
)

// cellsOf returns each point of each message: each call to DynamoDB and to Stripe.
func cellsOf(later time.Duration) (all []cell) {
	for what, calls := range map[string]struct {
		dynamo int
		stripe []stripetest.Endpoint
	}{
		paidOrder:     {3, []stripetest.Endpoint{stripetest.Create, stripetest.Confirm}},
		declinedOrder: {7, []stripetest.Endpoint{stripetest.Create, stripetest.Confirm, stripetest.Cancel}},
		smallRefund:   {4, []stripetest.Endpoint{stripetest.Read, stripetest.CreateRefund}},
	} {
		for _, when := range []string{"before", "after"} {
			for n := range calls.dynamo {
				all = append(all, cell{what, point{when, "DynamoDB", n + 1}, later})
			}
			for _, e := range calls.stripe {
				all = append(all, cell{what, point{when, string(e), 1}, later})
			}
		}
	}
	return all
}

func (c cell) orderID() string {
	return fmt.Sprintf("%s-%s-%s-%d-%.0fh", c.what, c.at.when, c.at.call, c.at.n, c.later.Hours())
}

func (c cell) body() string {
	switch c.what {
	case declinedOrder:
		return bodyWith(c.orderID(), declines)
	case smallRefund:
		return refundBody(c.orderID(), "R-1", fullAmount/2)
	}
	return body(c.orderID())
}

type state struct {
	Status  order.Status
	Charges int
	Refund  refund.Status
	Made    int // refunds that count, at Stripe
}

// wanted returns the state after the second delivery. A worker that died between its
// third call and Stripe's response may have sent the request for the refund. If Stripe
// does not list the refund, it is sent again within 20 hours.
func (c cell) wanted() state {
	unlisted := c.at == point{"before", string(stripetest.CreateRefund), 1} || c.at == point{"after", "DynamoDB", 3}
	switch {
	case c.what == paidOrder:
		return state{order.Paid, 1, "", 0}
	case c.what == declinedOrder:
		return state{order.Canceled, 0, "", 0}
	case unlisted && c.later > day:
		return state{order.Paid, 1, refund.Unknown, 0}
	}
	return state{order.PartiallyRefunded, 1, refund.Succeeded, 1}
}

func (k *trap) killEach(cells []cell) {
	k.t.Helper()
	for _, c := range cells {
		if c.what == smallRefund {
			k.post(body(c.orderID()))
		}
	}
	k.drain()
	for _, c := range cells {
		k.killAt(c.at, c.body())
	}
}

// deliverAgain lets the time pass after which the messages come again. The queue keeps a
// message for seven days; later, the producer sends it again.
func (k *trap) deliverAgain(cells []cell, later time.Duration) {
	k.t.Helper()
	k.pass(later)
	for _, c := range cells {
		if later > 7*day {
			k.post(c.body())
		}
	}
	k.drain()
}

// pass lets time pass: the clocks of Stripe and of the queue go forward. The function has
// this machine's clock. So every time that it wrote into a row goes back by as much,
// which is the same to it. sentAt is Stripe's time and stays.
func (o *running) pass(d time.Duration) {
	o.t.Helper()
	for item, err := range o.Items(o.t.Context(), o.Options.Table) {
		systemtest.Must(o.t, err)
		if system.Text(item, "sk") == "order" {
			o.moveBack(o.Options.Table, item, d)
		}
	}
	o.Advance(d)
}

func (o *running) moveBack(table string, item system.Item, d time.Duration) {
	o.t.Helper()
	var move func(system.Item)
	move = func(item system.Item) {
		for name, value := range item {
			if inner, is := value.(*types.AttributeValueMemberM); is {
				move(inner.Value)
			}
			if name == "leaseUntil" || strings.HasSuffix(name, "At") && name != "sentAt" {
				moved := system.Number(item, name) - d.Milliseconds()
				item[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(moved, 10)}
			}
		}
	}
	move(item)
	_, err := o.Client().PutItem(o.t.Context(), &sdk.PutItemInput{TableName: &table, Item: item})
	systemtest.Must(o.t, err)
}

// compare compares each cell with what is wanted, and checks every invariant.
func (k *trap) compare(cells []cell) {
	k.t.Helper()
	b := k.settle()
	for _, c := range cells {
		id := order.ID(c.orderID())
		i, _ := b.Orders[id].Refund("R-1")
		got := state{b.Orders[id].Status, len(b.Charges[id]), i.Status, b.Made(id, "R-1")}
		if diff := cmp.Diff(c.wanted(), got); diff != "" {
			k.t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

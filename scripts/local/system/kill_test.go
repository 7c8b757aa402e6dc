package system_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/domain/settle"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestKilled kills the worker before and after each call of an order that is paid, of one
// that is declined and frees its shirts, and of a refund, and delivers the message again
// after an hour or 20 days. Then Stripe executes the requests that were lost when their
// worker died, as if they had been on their way.
//
// An order is charged once in every case, also if Stripe has no idempotency keys. A
// refund of half of the charge is made at most once, unless Stripe has no keys: such a
// request looks like the one that repeated it.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	for claim, keyLife := range map[string]time.Duration{
		"Stripe keeps its keys for a day": day, "Stripe has no keys": noKeys,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			o := generous(stocked(1000, system.Options{Rules: stripetest.Rules{KeyLife: keyLife}}))
			o.Visibility = 10 * time.Minute // until the clock is moved
			k := killing{newTrap(t, w, o, func(s *running) []*lambdatest.Host {
				return []*lambdatest.Host{s.Function, s.Refund}
			})}
			for _, later := range []time.Duration{time.Hour, 20 * day} {
				cells := cellsOf(later)
				k.killEach(cells)
				k.deliverAgain(cells, later)
				k.compare(cells, cell.redelivered)
				k.executeLost(cells)
				k.compare(cells, func(c cell) state { return c.executed(keyLife) })
			}
			if keyLife != noKeys { // a refund is made twice there, see above
				k.settle()
			}
		})
	}
}

// noKeys is the KeyLife of a Stripe without idempotency keys.
const noKeys = -1

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

// state is what became of a cell.
type state struct {
	Status  order.Status
	Charges int
	Refund  refund.Status
	Made    int // refunds that count, at Stripe
}

// redelivered returns the state after the second delivery. A worker that died between its
// third call and Stripe's response may have sent the request. If Stripe does not list the
// refund, it is sent again within 20 hours.
func (c cell) redelivered() state {
	unlisted := c.lost() || c.at == point{"after", "DynamoDB", 3}
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

// executed returns the state after the lost request was executed.
func (c cell) executed(keyLife time.Duration) state {
	was := c.redelivered()
	switch {
	case c.lost() && was.Made == 0:
		return state{order.PartiallyRefunded, 1, refund.Succeeded, 1}
	case c.lost() && keyLife == noKeys:
		return state{order.Refunded, 1, refund.Succeeded, 2}
	}
	return was
}

// lost reports whether the worker died when it had sent the request for the refund.
func (c cell) lost() bool { return c.at == point{"before", string(stripetest.CreateRefund), 1} }

type killing struct{ *trap }

// killEach charges the orders of the refunds, and kills the worker of each cell.
func (k killing) killEach(cells []cell) {
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
func (k killing) deliverAgain(cells []cell, later time.Duration) {
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
		must(o.t, err)
		if system.Text(item, "sk") == "order" {
			o.moveBack(o.Options.Table, item, d)
		}
	}
	o.Advance(d)
}

// moveBack moves the times of an item back.
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
	_, err := o.table().PutItem(o.t.Context(), &sdk.PutItemInput{TableName: &table, Item: item})
	must(o.t, err)
}

// table returns a client of the engine, past the proxy.
func (o *running) table() *sdk.Client {
	return sdk.NewFromConfig(dynamodbtest.Config(o.Engine.Endpoint, func(string) string { return "" }))
}

// executeLost lets Stripe execute the lost requests, refreshes every refund and redrives
// the dead letters.
func (k killing) executeLost(cells []cell) {
	k.t.Helper()
	k.Stripe.Machine(func(m *stripetest.Machine) { m.RollForward(k.Stripe.Now()) })
	f := refund.Refresher{
		Store: refundtable.New(k.Store), Scope: system.Scope, Now: k.Stripe.Now,
		Provider: striperefund.New(stripe.Options{
			Key: system.PretendKey, BaseURL: k.Stripe.URL, Scope: system.Scope, Timeout: 10 * time.Second, Now: k.Stripe.Now,
		}),
	}
	for _, c := range cells {
		if c.what == smallRefund {
			_, err := f.Refresh(k.t.Context(), order.ID(c.orderID()))
			must(k.t, err)
		}
	}
	_, err := k.Redrive()
	must(k.t, err)
	k.drain()
}

// compare compares each cell with what is wanted.
func (k killing) compare(cells []cell, want func(cell) state) {
	k.t.Helper()
	b, err := k.Collect(k.t.Context(), k.posted, k.log)
	must(k.t, err)
	for _, c := range cells {
		id := order.ID(c.orderID())
		i, _ := b.Orders[id].Refund("R-1")
		got := state{b.Orders[id].Status, len(b.Charges[id]), i.Status, b.Made(id, "R-1")}
		if diff := cmp.Diff(want(c), got); diff != "" {
			k.t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

// TestALostRowIsNotChargedAgain deletes an order's row, as a restore from an old backup
// does, and redrives an old message of the order long after Stripe forgot its idempotency
// key.
func TestALostRowIsNotChargedAgain(t *testing.T) {
	t.Parallel()
	const id = "lost"
	s := world{systemtest.New(t)}.start(t, generous(system.Options{}))
	s.post(body(id))
	intent := s.settle().Orders[id].Intent
	for _, sk := range []string{"order", "event#000001"} {
		_, err := s.table().DeleteItem(t.Context(), &sdk.DeleteItemInput{
			TableName: aws.String(s.Options.Table), Key: system.Item{
				"orderId": &types.AttributeValueMemberS{Value: id}, "sk": &types.AttributeValueMemberS{Value: sk},
			},
		})
		must(t, err)
	}
	s.Advance(2 * day)
	redriven := s.redriven(id)
	if got := redriven.Parked[s.posted[1].ID].Reason; got != order.ReasonRecordLost {
		t.Fatalf("parked for %q, want %q", got, order.ReasonRecordLost)
	}
	_, err := settle.Restore(t.Context(), s.Store, s.Payments, system.Scope, id, intent, s.Stripe.Now())
	must(t, err)
	s.want(s.redriven(id), id, paid)
}

// redriven delivers a message of an order as a redrive does, four days after it was sent.
func (o *running) redriven(id string) invariants.Books {
	o.t.Helper()
	o.postDrafts(sqstest.Draft{Body: body(id), Attributes: map[string]sqstest.Attribute{
		sqs.AttrFirstSent: sqstest.Text(o.Stripe.Now().Add(-4 * day).UTC().Format(time.RFC3339)),
	}})
	o.drain()
	b, err := o.Collect(o.t.Context(), o.posted, o.log)
	must(o.t, err)
	return b
}

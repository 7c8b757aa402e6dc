package system_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

const day = 24 * time.Hour

// noKeys is the KeyLife of a Stripe without idempotency keys.
const noKeys = -1

// TestAKilledRefund kills the worker before and after each call of a refund, and delivers
// the message again after an hour or up to 20 days later. Afterwards Stripe executes the
// requests that were lost when their worker died, as if they had been on their way.
//
// A refund of more than half of the charge is made exactly once in every case. A smaller
// one is made at most once, unless Stripe has no keys: such a request looks like
// the one that repeated it.
func TestAKilledRefund(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	for claim, keyLife := range map[string]time.Duration{
		"is made at most once if Stripe keeps its keys":                       365 * day,
		"is made at most once if Stripe forgets its keys after a day":         day,
		"is made twice only by a lost request of a small one without any key": noKeys,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			k := &killer{crashed: make(chan struct{}, 1)}
			s := w.start(t, k.options(stripetest.Rules{KeyLife: keyLife}))
			k.running = s
			for _, later := range []time.Duration{time.Hour, 25 * time.Hour, 5 * day, 20 * day} {
				cells := cellsOf(later)
				k.killEach(cells)
				s.deliverAgain(cells)
				s.compare(cells, cell.redelivered)
				s.executeLost(cells)
				s.compare(cells, func(c cell) refunded { return c.executed(keyLife) })
			}
			if keyLife != noKeys { // one is made twice there, see above
				s.settle()
			}
		})
	}
}

// TestAKilledRefundIsLeftAloneForItsLease has a request that arrives 11 minutes after its
// worker died. The message comes again before that, and waits for the lease of 15 minutes
// to end. So the refund is made once, although it is small and Stripe has no keys.
func TestAKilledRefundIsLeftAloneForItsLease(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	k := &killer{crashed: make(chan struct{}, 1)}
	o, again := k.options(stripetest.Rules{KeyLife: noKeys}), make(chan sqstest.Batch, 10)
	crashed := o.Observe
	o.Observe = func(b sqstest.Batch) {
		crashed(b)
		if b.Messages[0].Receives > 1 {
			again <- b
		}
	}
	k.running = w.start(t, o)
	c := cell{"before", "create", 0, stripetest.CreateRefund, fullAmount / 2, 11 * time.Minute}
	k.killEach([]cell{c})
	k.pass(c.later)
	if b := <-again; len(b.Failed) != 1 || !strings.Contains(k.log.Text(), `"reason":"in_progress"`) {
		t.Errorf("got %+v, want the refund in progress", b)
	}
	k.Stripe.Machine(func(m *stripetest.Machine) { m.RollForward(k.Stripe.Now()) })
	k.pass(5 * time.Minute)
	k.drain()
	k.compare([]cell{c}, func(c cell) refunded { return c.made(1) })
	k.settle()
}

// TestAKilledRefundThatIsListedLate kills workers whose refund was made, and has Stripe's
// list lack it for 30 hours. An hour later its key finds it. A day later a small one is
// not sent again, and a second big one is refused: both are unknown until the list shows
// the refund.
func TestAKilledRefundThatIsListedLate(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	const lag = 30 * time.Hour
	k := &killer{crashed: make(chan struct{}, 1)}
	k.running = w.start(t, k.options(stripetest.Rules{RefundLag: lag}))
	for _, later := range []time.Duration{time.Hour, 25 * time.Hour} {
		made := slices.DeleteFunc(cellsOf(later), func(c cell) bool { return c.call != "create" || c.when != "after" })
		k.killEach(made)
		k.deliverAgain(made)
		k.compare(made, func(c cell) refunded {
			if later < day {
				return c.made(1)
			}
			unknown := c.unknown()
			unknown.Stripe, unknown.Made = c.amount, 1
			return unknown
		})
		k.pass(lag)
		k.executeLost(made)
		k.compare(made, func(c cell) refunded { return c.made(1) })
	}
	k.settle()
}

// cell is one refund, of an order of its own. Its worker dies before or after a call:
// that with this number to DynamoDB, or that to this endpoint of Stripe. A call that it
// dies before is lost.
type cell struct {
	when   string // "before" or "after"
	call   string
	dynamo int
	stripe stripetest.Endpoint
	amount int64
	later  time.Duration // when the message comes again
}

// cellsOf returns each point of each refund: a full one, one of more than half of the
// charge, and one of half of it.
func cellsOf(later time.Duration) (all []cell) {
	for _, amount := range []int64{fullAmount, fullAmount/2 + 1, fullAmount / 2} {
		for _, when := range []string{"before", "after"} {
			all = append(all,
				cell{when, "account", 1, "", amount, later},
				cell{when, "begin", 2, "", amount, later},
				cell{when, "read", 0, stripetest.Read, amount, later},
				cell{when, "mark", 3, "", amount, later},
				cell{when, "create", 0, stripetest.CreateRefund, amount, later},
				cell{when, "finish", 4, "", amount, later},
			)
		}
	}
	return all
}

func (c cell) orderID() string {
	return fmt.Sprintf("%s-%s-%d-%.0fh", c.when, c.call, c.amount, c.later.Hours())
}

func (c cell) body() string { return refundBody(c.orderID(), "R-1", c.amount) }

// made returns the state after the refund was made n times. The row counts the second one
// as given back by others.
func (c cell) made(n int) refunded {
	r := refunded{
		Order: order.PartiallyRefunded, Refunds: map[refund.ID]refund.Status{"R-1": refund.Succeeded},
		Row: int64(n) * c.amount, Stripe: int64(n) * c.amount, Made: n,
	}
	if r.Row == fullAmount {
		r.Order = order.Refunded
	}
	return r
}

// unknown returns the state of a refund that waits for a person.
func (c cell) unknown() refunded {
	return refunded{
		Order: order.Paid, Refunds: map[refund.ID]refund.Status{"R-1": refund.Unknown}, Parked: refund.ReasonUnknown,
	}
}

// redelivered returns the state after the second delivery. A worker that died between
// Mark and Create's response may have sent the request. If Stripe does not list the
// refund, it is sent again: within 20 hours, or if it is of more than half of the charge.
func (c cell) redelivered() refunded {
	unlisted := c.lost() || c.when == "after" && c.call == "mark"
	if unlisted && c.small() && c.later >= 20*time.Hour {
		return c.unknown()
	}
	return c.made(1)
}

// executed returns the state after the lost request was executed.
func (c cell) executed(keyLife time.Duration) refunded {
	before := c.redelivered()
	switch {
	case c.lost() && before.Made == 0:
		return c.made(1)
	case c.lost() && c.small() && keyLife == noKeys:
		return c.made(2)
	}
	return before
}

// lost reports whether the worker died when it had sent the request for the refund.
func (c cell) lost() bool { return c.when == "before" && c.call == "create" }

func (c cell) small() bool { return 2*c.amount <= fullAmount }

// killer kills the function once, at the point of a cell.
type killer struct {
	*running

	at      atomic.Pointer[cell] // nil: at none
	crashed chan struct{}
}

// options returns those of a system that hides a message until its clock is moved.
func (k *killer) options(rules stripetest.Rules) system.Options {
	o := generous(system.Options{
		Instances: 1, Rules: rules,
		BeforeStripe: func(c stripetest.Call) { k.stripe("before", c) },
		AfterStripe:  func(c stripetest.Call) { k.stripe("after", c) },
		Observe: func(b sqstest.Batch) {
			if b.Err != nil {
				k.crashed <- struct{}{}
			}
		},
	})
	o.Visibility = 10 * time.Minute
	return o
}

// killEach charges the order of each cell, and kills the worker of its refund.
func (k *killer) killEach(cells []cell) {
	k.t.Helper()
	bodies := make([]string, len(cells))
	for i, c := range cells {
		bodies[i] = body(c.orderID())
	}
	k.post(bodies...)
	k.drain()
	k.Proxy.Before(func(c dynamodbtest.Call) { k.dynamo("before", c) })
	k.Proxy.After(func(c dynamodbtest.Call) { k.dynamo("after", c) })
	ctx, cancel := context.WithTimeout(k.t.Context(), 5*time.Minute)
	defer cancel()
	for _, c := range cells {
		if c.dynamo > 0 {
			c.dynamo += k.Proxy.Total()
		}
		k.at.Store(&c)
		k.send(c.body())
		select {
		case <-k.crashed:
		case <-ctx.Done():
			k.t.Fatalf("%s: nothing was killed\n%s", c.orderID(), k.log.Text())
		}
	}
}

func (k *killer) dynamo(when string, c dynamodbtest.Call) {
	if at := k.at.Load(); at != nil && at.when == when && at.dynamo == c.Number {
		if when == "before" {
			k.Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.LoseBefore, Number: c.Number, Times: 1})
		}
		k.kill()
	}
}

func (k *killer) stripe(when string, c stripetest.Call) {
	if at := k.at.Load(); at != nil && at.when == when && at.stripe == c.Endpoint {
		if when == "before" {
			k.Stripe.Fail(stripetest.Fault{Kind: stripetest.LoseRequest, Number: c.Number})
		}
		k.kill()
	}
}

func (k *killer) kill() {
	k.at.Store(nil)
	k.Function.Kill(nil)
}

// deliverAgain lets the time pass after which the messages come again. The queue keeps a
// message for seven days; later, the producer sends it again.
func (o *running) deliverAgain(cells []cell) {
	o.t.Helper()
	o.pass(cells[0].later)
	for _, c := range cells {
		if c.later > 7*day {
			o.send(c.body())
		}
	}
	o.drain()
}

// pass lets time pass: the clocks of Stripe and of the queue go forward. The function has
// this machine's clock. So every time that it wrote into a row goes back by as much,
// which is the same to it. sentAt is Stripe's time and stays.
func (o *running) pass(d time.Duration) {
	o.t.Helper()
	for item, err := range o.Items(o.t.Context(), o.Options.Table) {
		must(o.t, err)
		if system.Text(item, "sk") != "order" {
			continue
		}
		moveBack(item, d)
		_, err := o.table().PutItem(o.t.Context(), &sdk.PutItemInput{TableName: &o.Options.Table, Item: item})
		must(o.t, err)
	}
	o.Advance(d)
}

func moveBack(item system.Item, d time.Duration) {
	for name, value := range item {
		if inner, is := value.(*types.AttributeValueMemberM); is {
			moveBack(inner.Value, d)
		}
		if name == "leaseUntil" || strings.HasSuffix(name, "At") && name != "sentAt" {
			moved := system.Number(item, name) - d.Milliseconds()
			item[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(moved, 10)}
		}
	}
}

// executeLost lets Stripe execute the lost requests, refreshes every refund and redrives
// the dead letters.
func (o *running) executeLost(cells []cell) {
	o.t.Helper()
	o.Stripe.Machine(func(m *stripetest.Machine) { m.RollForward(o.Stripe.Now()) })
	for _, c := range cells {
		o.refresh(order.ID(c.orderID()))
	}
	_, err := o.Redrive()
	must(o.t, err)
	o.drain()
}

// compare compares the refund of each cell with what is wanted.
func (o *running) compare(cells []cell, want func(cell) refunded) {
	o.t.Helper()
	for _, c := range cells {
		if diff := cmp.Diff(o.refunded(order.ID(c.orderID())), want(c)); diff != "" {
			o.t.Errorf("%s (-got +want):\n%s", c.orderID(), diff)
		}
	}
}

package oracle

import (
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// laterExamples are about those who act after the worker: the reconciler and the
// publisher.
func laterExamples() []example {
	reconciles, publishes := one(takesDays), one(declined)
	reconciles.subject.Reconciles, publishes.subject.Publishes = true, true
	// paidLater is an order with two events.
	paidLater := func(c *scene) []outbox.Event {
		id := c.charge(0)
		c.write(c.begin(), id, order.Declined)
		c.step()
		c.must(c.stripe.CustomerPays(c.now, string(id)))
		c.oracle.ChangedOutside("ORD-1")
		c.settlePaid()
		c.step()
		r, _ := c.store.Peek("ORD-1")
		return []outbox.Event{
			{OrderID: "ORD-1", Total: r.Total, Event: r.Events[0]}, {OrderID: "ORD-1", Total: r.Total, Event: r.Events[1]},
		}
	}
	return []example{
		{"an open order without an intent is not reported", NoneForgotten, "no reconcile run reports it", reconciles, func(c *scene, right bool) {
			c.begin()
			c.oracle.of("ORD-1").parked[0] = "mismatch" // so that the order may stay open
			if right {
				c.oracle.Reported([]order.Record{{OrderID: "ORD-1"}})
			}
			c.rest()
		}},
		{"an event with another amount is published", PublishedInOrder, "the row has none like it", publishes, func(c *scene, right bool) {
			e := paidLater(c)[0]
			if !right {
				e.Total.Amount++
			}
			c.oracle.Published(e)
		}},
	}
}

func TestAnEventMayBePublishedAgain(t *testing.T) {
	t.Parallel()
	c := newScene(t, one(visa))
	c.payOrder()
	r, _ := c.store.Peek("ORD-1")
	for range 2 {
		c.oracle.Published(outbox.Event{OrderID: "ORD-1", Total: r.Total, Event: r.Events[0]})
	}
	if got := c.oracle.Broken(); got != nil {
		t.Errorf("got %s", got)
	}
}

// The diagram is the whole rule: a settled order never waits again.
func TestNoSettledOrderReturnsToWaiting(t *testing.T) {
	t.Parallel()
	for _, from := range []order.Status{order.Paid, order.Declined, order.Canceled} {
		for _, to := range []order.Status{order.Open, order.Pending, order.ActionRequired} {
			if allowed(from, to) || from.Transition(to) == nil {
				t.Errorf("%s -> %s is allowed", from, to)
			}
		}
	}
}

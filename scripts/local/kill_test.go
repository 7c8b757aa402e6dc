package main

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// newTestKiller returns a killer of the orders A and B, of which B is lost, with a queue
// that holds the messages of B, which were received once, and of another order.
func newTestKiller(t *testing.T) (*killer, *system.System) {
	t.Helper()
	host, err := lambdatest.Start(lambdatest.Options{})
	must(t, err)
	t.Cleanup(func() { _ = host.Close() }) // nothing runs in it
	queue, err := sqstest.Serve(sqstest.Options{})
	must(t, err)
	t.Cleanup(func() { _ = queue.Close() })
	s := &system.System{Function: host, SQS: queue}
	queue.Machine(func(m *sqstest.Machine, now time.Time) {
		must(t, m.Create(now, s.OrderQueue(), sqstest.DefaultSettings()))
		for _, id := range []string{"B", "C"} {
			_, err := m.Send(now, s.OrderQueue(), sqstest.Draft{Body: body(id)})
			must(t, err)
		}
		_, err := m.Receive(now, s.OrderQueue(), 10, nil)
		must(t, err)
	})
	k := newKiller([][]string{{body("A"), body("C")}, {body("B"), body("A")}}, "A", "B")
	k.system.Store(s)
	return k, s
}

func confirmed(id string) stripetest.Call {
	return stripetest.Call{Endpoint: stripetest.Confirm, OrderID: id}
}

func TestTheKillerKillsWhenEachOfItsOrdersIsCharged(t *testing.T) {
	t.Parallel()
	k, s := newTestKiller(t)
	k.afterStripe(stripetest.Call{Endpoint: stripetest.Create, OrderID: "A"})
	k.afterStripe(confirmed("C"))
	if victims, _ := k.dead(); len(victims) > 0 {
		t.Errorf("killed the function of the orders %q, want no kill yet", victims)
	}
	var held sync.WaitGroup
	for _, id := range []string{"B", "A"} {
		held.Go(func() { k.afterStripe(confirmed(id)) })
	}
	held.Wait()
	victims, lost := k.dead()
	if len(victims) != 2 || lost != "B" {
		t.Errorf("killed the function of the orders %q and lost %q, want A and B, and B", victims, lost)
	}
	if n := s.Waiting(); n != 1 {
		t.Errorf("got %d messages in the queue, want that of C alone", n)
	}
}

func TestTheKillerWaitsOnlySoLongForAnotherOrder(t *testing.T) {
	t.Parallel()
	k, s := newTestKiller(t)
	k.afterStripe(confirmed("A")) // returns, although B is not charged
	k.afterStripe(confirmed("B")) // at another delivery
	victims, lost := k.dead()
	if diff := cmp.Diff(victims, []order.ID{"A"}); diff != "" || lost != "" || s.Waiting() != 2 {
		t.Errorf("lost %q and %d messages are left, want none and 2; killed (-got +want):\n%s", lost, s.Waiting(), diff)
	}
}

func TestOnlyTheWebhooksOfTheLostOrderAreLost(t *testing.T) {
	t.Parallel()
	k, _ := newTestKiller(t)
	for id, want := range map[string][]time.Duration{"B": nil, "A": {0}, "C": {0}} {
		event := stripetest.Event{Intent: &stripetest.Intent{Metadata: map[string]string{"orderId": id}}}
		if diff := cmp.Diff(k.deliveries(event), want); diff != "" {
			t.Errorf("order %s: deliveries (-got +want):\n%s", id, diff)
		}
	}
}

func TestAnOrderThatIsNotInTheFileIsNotLost(t *testing.T) {
	t.Parallel()
	k := newKiller([][]string{{body("A")}}, "A", "B")
	if diff := cmp.Diff(k.orders, []order.ID{"A"}); diff != "" || k.lost != "" {
		t.Errorf("lost %q; orders (-got +want):\n%s", k.lost, diff)
	}
}

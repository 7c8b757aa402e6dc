package main

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
)

// testVictims are the orders A and B, of which B is lost.
func testVictims() []victim {
	return []victim{{"A", stripetest.Confirm, false}, {"B", stripetest.Confirm, true}}
}

// newTestKiller returns a killer of the orders A and B, with a queue that holds the
// messages of B, which were received once, and of another order.
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
	k := newKiller([][]string{{body("A"), body("C")}, {body("B"), body("A")}}, testVictims()...)
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
	if dead := k.deaths(); len(dead) > 0 {
		t.Errorf("killed the function of %+v, want no kill yet", dead)
	}
	var held sync.WaitGroup
	for _, id := range []string{"B", "A"} {
		held.Go(func() { k.afterStripe(confirmed(id)) })
	}
	held.Wait()
	if dead := k.deaths(); len(dead) != 2 {
		t.Errorf("killed the function of %+v, want A and B", dead)
	}
	if n := s.Waiting(); n != 1 {
		t.Errorf("got %d messages in the queue, want that of C alone", n)
	}
	if first, again := k.attend(), k.attend(); len(first) != 2 || len(again) > 0 {
		t.Errorf("attended to %+v and then to %+v, want each once", first, again)
	}
}

func TestTheKillerWaitsOnlySoLongForAnotherOrder(t *testing.T) {
	t.Parallel()
	k, s := newTestKiller(t)
	k.afterStripe(confirmed("A")) // returns, although B is not charged
	k.afterStripe(confirmed("B")) // at another delivery
	if got, want := k.deaths(), testVictims()[:1]; !slices.Equal(got, want) || s.Waiting() != 2 {
		t.Errorf("killed the function of %+v, and %d messages are left, want %+v and 2", got, s.Waiting(), want)
	}
}

func TestOnlyTheWebhooksOfTheLostOrderAreLost(t *testing.T) {
	t.Parallel()
	k, _ := newTestKiller(t)
	for id, want := range map[string][]time.Duration{"B": nil, "A": {0}, "C": {0}} {
		event := stripetest.Event{Intent: &stripetest.Intent{Metadata: map[string]string{"orderId": id}}}
		if diff := cmp.Diff(stages{{killer: k}}.deliveries(event), want); diff != "" {
			t.Errorf("order %s: deliveries (-got +want):\n%s", id, diff)
		}
	}
}

func TestOnlyWhatIsPostedIsKilled(t *testing.T) {
	t.Parallel()
	charge, back := victim{"A", stripetest.Confirm, false}, victim{"A", stripetest.CreateRefund, false}
	for claim, tt := range map[string]struct {
		body string
		want []victim
	}{
		"an order is not killed at its refund":   {body("A"), []victim{charge}},
		"a refund is not killed at the charge":   {refundBody("A", 100), []victim{back}},
		"another order is not killed":            {body("B"), nil},
		"a refund of another one is not killed":  {refundBody("B", 100), nil},
		"a message that is neither is no reason": {"{", nil},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			if got := newKiller([][]string{nil, {tt.body}}, charge, back).victims; !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

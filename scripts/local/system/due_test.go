package system_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestThousandsOfOrdersWait has more due orders than one run of the function of the
// schedule can look at, and kills the first run in the middle. The bank has cleared every
// tenth order meanwhile.
func TestThousandsOfOrdersWait(t *testing.T) {
	t.Parallel()
	const orders, cleared, rate, lanes, shards = 2000, 10, 60, 10, 16
	w := world{systemtest.New(t)}
	s := newTrap(t, w, system.Options{
		Instances: 4, FunctionTimeout: 10 * time.Second, Visibility: 12 * time.Second,
		Reconcile: w.Build(t, "functions/reconcile"),
		Env:       map[string]string{"STRIPE_RATE": strconv.Itoa(rate), "PARALLEL_ORDERS": strconv.Itoa(lanes)},
	}, func(s *running) []*lambdatest.Host { return []*lambdatest.Host{s.Reconcile} })
	bodies := make([]string, orders)
	for n := range bodies {
		bodies[n] = bodyWith(fmt.Sprintf("order-%04d", n), takesDays)
	}
	s.post(bodies...)
	s.drain()
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for n, i := range m.Intents() {
			if n%cleared == 0 {
				must(t, m.Settle(s.Stripe.Now(), i.ID, true))
			}
		}
	})
	s.Proxy.Reset()
	pages, before := s.countPages(), len(s.Stripe.Calls())

	s.set(point{"after", string(stripetest.Read), 500})
	if err := s.Look(t.Context()); err == nil {
		t.Error("the first run was not killed")
	}
	runs := 1
	for ; runs < 20 && !strings.Contains(s.log.Text(), `"more":false`); runs++ {
		_, err := s.Reconcile.Invoke(t.Context(), []byte("{}"))
		must(t, err)
	}
	// A run that dies leaves the orders that it looks at to the next one.
	const most = orders + lanes
	counts := s.Proxy.Counts()
	reads, writes := s.Stripe.Count(stripetest.Read), counts["UpdateItem"]+counts["TransactWriteItems"]
	if reads < orders || reads > most || len(s.Stripe.Calls())-before != reads || runs < 3 {
		t.Errorf("got %d reads at Stripe in %d runs, want one for each of %d orders in several", reads, runs, orders)
	}
	if writes < orders || writes > most {
		t.Errorf("got %d writes, want one for each of %d orders", writes, orders)
	}
	if got, most := int(pages.Load()), runs*shards+reads/100; got > most {
		t.Errorf("got %d pages of the index in %d runs, want at most %d", got, runs, most)
	}
	if calls, want := s.Proxy.Total(), reads+writes+int(pages.Load()); calls > want+lanes {
		t.Errorf("got %d calls to DynamoDB, want %d: a load and a write for each order, and the pages", calls, want)
	}
	want := map[order.Status]int{order.Paid: orders / cleared, order.Pending: orders - orders/cleared}
	if diff := cmp.Diff(s.statuses(), want); diff != "" {
		t.Errorf("orders by status (-got +want):\n%s", diff)
	}
}

// countPages counts the pages of the index from now on, with a fault that never applies.
func (o *running) countPages() *atomic.Int64 {
	pages := new(atomic.Int64)
	o.Proxy.Fail(dynamodbtest.Fault{Operation: "Query", Match: func(body []byte) bool {
		if bytes.Contains(body, []byte(`"IndexName"`)) {
			pages.Add(1)
		}
		return false
	}})
	return pages
}

package system_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// fullAmount is the amount of body's order, in cents.
const fullAmount = 3998

func refundBody(orderID, id string, amount int64) string {
	return fmt.Sprintf(`{"type":"refund","orderId":%q,"refundId":%q,"amount":%d,"reason":"duplicate"}`, orderID, id, amount)
}

// send sends messages that the books of orders do not have, such as those of refunds.
func (o *running) send(bodies ...string) {
	o.t.Helper()
	drafts := make([]sqstest.Draft, len(bodies))
	for i, body := range bodies {
		drafts[i].Body = body
	}
	_, err := o.Post(drafts)
	must(o.t, err)
}

// refunded is what became of an order's refunds.
type refunded struct {
	Order   order.Status
	Refunds map[refund.ID]refund.Status // in the row, and by the last event of each
	Row     int64                       // what went back, as the row shows
	Stripe  int64                       // what went back at Stripe
	Made    int                         // in so many refunds
	Parked  order.Reason                // of the message that is parked; "" if none is
}

func (o *running) refunded(id order.ID) refunded {
	o.t.Helper()
	account, err := o.refunds().Account(o.t.Context(), id)
	must(o.t, err)
	got := refunded{
		Order: account.Status, Refunds: map[refund.ID]refund.Status{}, Row: account.Refunded(), Parked: o.parked()[id],
	}
	for _, i := range account.Items {
		got.Refunds[i.ID] = i.Status
	}
	if diff := cmp.Diff(o.lastStatuses(id), got.Refunds); diff != "" {
		o.t.Errorf("order %s: refunds (-events +row):\n%s", id, diff)
	}
	o.Stripe.Machine(func(m *stripetest.Machine) {
		for _, r := range m.Refunds() {
			counts := r.Status == stripetest.RefundSucceeded || r.Status == stripetest.RefundPending
			if r.Intent == string(account.Intent) && counts {
				got.Stripe += r.Amount
				got.Made++
			}
		}
	})
	return got
}

// lastStatuses returns the status of each refund of an order by its last event.
func (o *running) lastStatuses(id order.ID) map[refund.ID]refund.Status {
	o.t.Helper()
	record, err := o.Store.Load(o.t.Context(), id)
	must(o.t, err)
	told := map[refund.ID]refund.Status{}
	for _, e := range record.Events {
		if e.Refund.ID != "" {
			told[refund.ID(e.Refund.ID)] = refund.Status(e.Refund.Status)
		}
	}
	return told
}

// refunds returns the refunds of the table, past the proxy.
func (o *running) refunds() *dynamodb.Refunds { return dynamodb.NewRefunds(o.Store) }

// refresh looks at the refunds of an order at Stripe, as a webhook of one of them does.
func (o *running) refresh(id order.ID) {
	o.t.Helper()
	f := refund.Refresher{Records: o.refunds(), Scope: system.Scope, Now: o.Stripe.Now, Provider: striperefund.New(stripe.Options{
		Key: system.PretendKey, BaseURL: o.Stripe.URL, Scope: system.Scope, Timeout: 10 * time.Second, Now: o.Stripe.Now,
	})}
	_, err := f.Refresh(o.t.Context(), id)
	must(o.t, err)
}

// parked returns the reasons of the dead letters, by order.
func (o *running) parked() map[order.ID]order.Reason {
	o.t.Helper()
	dead, err := o.Dead()
	must(o.t, err)
	reasons := map[order.ID]order.Reason{}
	for _, m := range dead {
		reasons[order.ID(m.Attributes[sqs.AttrOrderID].Text)] = order.Reason(m.Attributes[sqs.AttrReason].Text)
	}
	return reasons
}

// TestCallsOfARefund counts the calls of the compiled function, and the connections to
// Stripe.
func TestCallsOfARefund(t *testing.T) {
	t.Parallel()
	line := &line{}
	server := httptest.NewServer(line)
	t.Cleanup(server.Close)
	w := world{systemtest.New(t)}
	s := w.start(t, generous(system.Options{Instances: 1, Env: map[string]string{"STRIPE_API_BASE": server.URL}}))
	line.to(t, s.Stripe.URL)
	for _, step := range []struct {
		claim, body string
		dynamo      map[string]int
		stripe      []string
	}{
		{
			"an order makes 3 DynamoDB calls, and 2 Stripe calls over the kept connection", body("counted"),
			map[string]int{"UpdateItem": 2, "TransactWriteItems": 1},
			[]string{"1 POST /v1/payment_intents", "1 POST /v1/payment_intents/pi_000001/confirm"},
		},
		{
			"a refund makes 4 DynamoDB calls, and 2 Stripe calls over one new connection", refundBody("counted", "R-1", 1000),
			map[string]int{"GetItem": 1, "UpdateItem": 2, "TransactWriteItems": 1},
			[]string{"2 GET /v1/payment_intents/pi_000001", "2 POST /v1/refunds"},
		},
		{
			"the next refund has a connection of its own", refundBody("counted", "R-2", 1000),
			map[string]int{"GetItem": 1, "UpdateItem": 2, "TransactWriteItems": 1},
			[]string{"3 GET /v1/payment_intents/pi_000001", "3 POST /v1/refunds"},
		},
		{
			"a duplicate makes 1 DynamoDB call and no Stripe call", refundBody("counted", "R-1", 1000),
			map[string]int{"GetItem": 1},
			nil,
		},
		{
			"an order is still charged over the first connection", body("next"),
			map[string]int{"UpdateItem": 2, "TransactWriteItems": 1},
			[]string{"1 POST /v1/payment_intents", "1 POST /v1/payment_intents/pi_000002/confirm"},
		},
	} {
		s.Proxy.Reset()
		line.reset()
		s.send(step.body)
		s.drain()
		if diff := cmp.Diff(s.Proxy.Counts(), step.dynamo); diff != "" {
			t.Errorf("%s: DynamoDB calls (-got +want):\n%s", step.claim, diff)
		}
		if diff := cmp.Diff(line.requests(), step.stripe); diff != "" {
			t.Errorf("%s: connection and request (-got +want):\n%s", step.claim, diff)
		}
	}
}

// line passes requests on to Stripe, and numbers the connections over which they come.
type line struct {
	mu    sync.Mutex
	proxy http.Handler
	conns []string
	seen  []string
}

func (l *line) to(t *testing.T, address string) {
	t.Helper()
	target, err := url.Parse(address)
	must(t, err)
	l.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
}

func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	n := slices.Index(l.conns, r.RemoteAddr)
	if n < 0 {
		n = len(l.conns)
		l.conns = append(l.conns, r.RemoteAddr)
	}
	l.seen = append(l.seen, fmt.Sprintf("%d %s %s", n+1, r.Method, r.URL.Path))
	l.mu.Unlock()
	l.proxy.ServeHTTP(w, r)
}

func (l *line) requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

func (l *line) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = nil
}

// TestARacedRefund has the refund delivered to a second instance and the order canceled
// by an operator, both while the first instance waits for Stripe.
func TestARacedRefund(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	r := &rivals{ended: make(chan sqstest.Batch, 100)}
	r.running = w.start(t, generous(system.Options{
		BeforeStripe: func(c stripetest.Call) { r.race("before", c) },
		AfterStripe:  func(c stripetest.Call) { r.race("after", c) },
		Observe:      func(b sqstest.Batch) { r.ended <- b },
	}))
	canceled := refunded{Order: order.Canceled, Refunds: map[refund.ID]refund.Status{}, Parked: refund.ReasonNotCharged}
	once := refunded{
		Order: order.Refunded, Refunds: map[refund.ID]refund.Status{"R-1": refund.Succeeded},
		Row: fullAmount, Stripe: fullAmount, Made: 1,
	}
	for _, tt := range []struct {
		when string
		call stripetest.Endpoint
		want refunded
	}{
		{"before", stripetest.Create, canceled},
		{"after", stripetest.Create, canceled},
		{"before", stripetest.Confirm, canceled},
		{"after", stripetest.Confirm, once},
		{"before", stripetest.Read, once},
		{"after", stripetest.Read, once},
		{"before", stripetest.CreateRefund, once},
		{"after", stripetest.CreateRefund, once},
	} {
		id := fmt.Sprintf("%s-%s", tt.when, tt.call)
		r.point.Store(&racePoint{id, tt.when, tt.call})
		r.post(body(id))
		r.skipUntilEmpty()
		r.send(refundBody(id, "R-1", fullAmount))
		r.skipUntilEmpty()
		if r.point.Load() != nil {
			t.Errorf("%s: nothing was raced", id)
		}
		if diff := cmp.Diff(r.refunded(order.ID(id)), tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", id, diff)
		}
	}
	r.settle()
}

// rivals act once, when a call to Stripe is at their point.
type rivals struct {
	*running

	point atomic.Pointer[racePoint]
	ended chan sqstest.Batch
}

type racePoint struct {
	orderID, when string
	call          stripetest.Endpoint
}

func (r *rivals) race(when string, c stripetest.Call) {
	at := r.point.Load()
	if at == nil || *at != (racePoint{c.OrderID, when, c.Endpoint}) || !r.point.CompareAndSwap(at, nil) {
		return
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	r.duplicate(ctx, at.orderID)
	canceling := order.Cancellation{Records: r.Store, Payments: r.Payments, Canceler: r.Payments, Scope: system.Scope}
	if _, err := canceling.Cancel(ctx, order.ID(at.orderID), r.Stripe.Now()); err != nil {
		r.t.Errorf("%+v: cancel: %v", *at, err)
	}
}

// duplicate delivers the refund to the instance that is free, which has to leave it in
// the queue.
func (r *rivals) duplicate(ctx context.Context, orderID string) {
	ids, err := r.Post([]sqstest.Draft{{Body: refundBody(orderID, "R-1", fullAmount)}})
	for err == nil {
		select {
		case b := <-r.ended:
			switch {
			case b.Messages[0].ID != ids[0]: // of an earlier invocation
			case len(b.Failed) == 1:
				return
			default:
				err = fmt.Errorf("got %+v, want the message to come again", b)
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	r.t.Errorf("deliver a duplicate of %s: %v", orderID, err)
}

package system_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestWebhooks runs both functions over one table: what Stripe reports after the charge
// settles the order.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	webhook := w.Build(t, "functions/webhook")
	start := func(t *testing.T, deliveries func(stripetest.Event) []time.Duration) *running {
		t.Helper()
		return w.start(t, generous(system.Options{Webhook: webhook, Deliveries: deliveries}))
	}
	for claim, deliveries := range map[string]func(stripetest.Event) []time.Duration{
		"webhooks settle what Stripe reports later": nil,
		"webhooks three times, reversed and three days late settle the same": func(e stripetest.Event) []time.Duration {
			late := 72*time.Hour - time.Duration(e.Number)*time.Hour
			return []time.Duration{late, late + time.Minute, late + 2*time.Minute}
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			want := map[order.ID]outcome{
				"card": {order.Paid, 1, 1}, "bank": {order.Paid, 1, 2}, "days": {order.Paid, 1, 2}, "bounces": {order.Declined, 0, 2},
			}
			if diff := cmp.Diff(later(start(t, deliveries)), want); diff != "" {
				t.Errorf("status, charges, events (-got +want):\n%s", diff)
			}
		})
	}
	t.Run("one trace id finds an order everywhere but at Stripe", func(t *testing.T) {
		t.Parallel()
		traced(start(t, nil))
	})
	t.Run("a request that Stripe did not sign calls nothing", func(t *testing.T) {
		t.Parallel()
		forged(t, start(t, nil))
	})
}

// later lets Stripe report on four orders after their messages were settled, and returns
// what became of them.
func later(s *running) map[order.ID]outcome {
	s.t.Helper()
	s.post(bodyWith("card", "pm_card_visa"), bodyWith("bank", "pm_card_authenticationRequired"),
		bodyWith("days", "pm_usBankAccount_processing"), bodyWith("bounces", "pm_usBankAccount_processing"))
	s.settle()
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, i := range m.Intents() {
			var err error
			switch i.OrderID() {
			case "bank":
				err = m.CustomerPays(s.Stripe.Now(), i.ID)
			case "days", "bounces":
				err = m.Settle(s.Stripe.Now(), i.ID, i.OrderID() == "days")
			}
			if err != nil {
				s.t.Error(err)
			}
		}
	})
	for range 4 {
		if err := s.Heard(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.Advance(24 * time.Hour)
	}
	if bad := slices.DeleteFunc(s.Events.Sent(), func(e stripetest.Sent) bool { return e.Status == http.StatusOK }); len(bad) > 0 {
		s.t.Errorf("got %+v, want 200 for every webhook", bad)
	}
	b := s.settle()
	got := map[order.ID]outcome{}
	for id := range b.Orders {
		got[id] = outcomeOf(b, id)
	}
	return got
}

// traced sends an order twice, each time with another trace.
func traced(s *running) {
	s.t.Helper()
	const first, second = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, trace := range []string{first, second} {
		s.postDrafts(sqstest.Draft{Body: bodyWith("days", "pm_usBankAccount_processing"), Attributes: map[string]sqstest.Attribute{
			sqs.AttrTrace: sqstest.Text("00-" + trace + "-b7ad6b7169203331-01"),
		}})
		s.settle()
	}
	s.Stripe.Machine(func(m *stripetest.Machine) { must(s.t, m.Settle(s.Stripe.Now(), m.Intents()[0].ID, true)) })
	must(s.t, s.Heard(s.t.Context()))
	s.settle()
	items := 0
	for item, err := range s.Items(s.t.Context(), s.Options.Table) {
		must(s.t, err)
		if items++; !strings.Contains(system.Text(item, "traceparent"), first) {
			s.t.Errorf("got %v, want the first trace", item)
		}
	}
	log := s.log.Text()
	if lines := strings.Count(log, `"trace_id":"`+first); items != 3 || lines != 4 || strings.Count(log, second) != 1 {
		s.t.Errorf("got %d items and %d lines, want 3 and 4, one of which has the second trace:\n%s", items, lines, log)
	}
	s.Stripe.Machine(func(m *stripetest.Machine) {
		if sent := fmt.Sprintf("%+v", *m.Intents()[0]); strings.Contains(sent, first) || len(m.Intents()) != 1 {
			s.t.Errorf("got %d intents, the first %s, want one without a trace", len(m.Intents()), sent)
		}
	})
}

// forged sends requests that must not reach the table or Stripe.
func forged(t *testing.T, s *running) {
	t.Helper()
	body := []byte(`{"id":"evt_1","object":"event","type":"payment_intent.succeeded","created":1,"data":{"object":{"id":"pi_1",` +
		`"status":"succeeded","metadata":{"orderId":"ORD-1","scope":"local"}}}}`)
	large := append(bytes.Clone(body), bytes.Repeat([]byte(" "), 1<<20)...)
	now := time.Now()
	for claim, tt := range map[string]struct {
		body   []byte
		header string
		want   int
	}{
		"forged":    {body, stripetest.Signature(body, now, "whsec_forged"), http.StatusBadRequest},
		"stale":     {body, stripetest.Signature(body, now.Add(-6*time.Minute), system.WebhookSecret), http.StatusBadRequest},
		"truncated": {body[:50], stripetest.Signature(body, now, system.WebhookSecret), http.StatusBadRequest},
		"too large": {large, stripetest.Signature(large, now, system.WebhookSecret), http.StatusRequestEntityTooLarge},
	} {
		if got := request(t, s.API.URL+"/stripe/webhook", tt.body, tt.header); got != tt.want {
			t.Errorf("%s: got %d, want %d", claim, got, tt.want)
		}
	}
	if calls := s.Proxy.Total() + len(s.Stripe.Calls()); calls != 0 {
		t.Errorf("got %d calls to the table and to Stripe, want none", calls)
	}
	for result, n := range map[string]int{"invalid_signature": 3, "too_large": 1} {
		if got := strings.Count(s.log.Text(), fmt.Sprintf(`"Result":%q`, result)); got != n {
			t.Errorf("got %d of %s in the log, want %d:\n%s", got, result, n, s.log.Text())
		}
	}
}

func request(t *testing.T, url string, body []byte, signature string) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Stripe-Signature", signature)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestReconcile runs the function of the schedule over the table of the order function.
func TestReconcile(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	reconcile := w.Build(t, "functions/reconcile")
	t.Run("an order whose worker died after the charge, and whose message expired, is settled", func(t *testing.T) {
		t.Parallel()
		k := &trap{}
		s := w.start(t, quick(system.Options{Reconcile: reconcile, AfterStripe: func(c stripetest.Call) {
			if c.Endpoint == stripetest.Confirm {
				k.spring()
			}
		}}))
		k.system.Store(s.System)
		s.post(body("died"))
		for len(s.Stripe.Calls()) < 2 || s.Busy() {
			time.Sleep(time.Millisecond)
		}
		s.Advance(8 * 24 * time.Hour) // the queue keeps a message for seven days
		s.look("died", order.Paid)
		if diff := cmp.Diff(outcomeOf(s.settle(), "died"), outcome{order.Paid, 1, 1}); diff != "" {
			t.Errorf("status, charges, events (-got +want):\n%s", diff)
		}
	})
}

// TestLookAll has orders that wait: one that Stripe has settled and, in the second case,
// none that Stripe answers for.
func TestLookAll(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	reconcile := w.Build(t, "functions/reconcile")
	for claim, tt := range map[string]struct {
		down bool
		paid int
	}{
		"every waiting order is looked at":                  {false, 1},
		"a run that gets no answer is the function's error": {true, 0},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := w.start(t, system.Options{Reconcile: reconcile})
			from := s.Stripe.Now()
			s.pending("waits", from)
			s.pending("cleared", from)
			s.Stripe.Machine(func(m *stripetest.Machine) { must(t, m.Settle(from, "pi_000002", true)) })
			if tt.down {
				s.Stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
			}
			err := s.LookAll(t.Context())
			if failed := err != nil && strings.Contains(err.Error(), "does not answer"); failed != tt.down || !failed && err != nil {
				t.Errorf("got %v, want an error: %t", err, tt.down)
			}
			if diff := cmp.Diff(s.statuses(), map[order.Status]int{order.Paid: tt.paid, order.Pending: 2 - tt.paid}, cmpopts.IgnoreMapEntries(
				func(_ order.Status, n int) bool { return n == 0 })); diff != "" {
				t.Errorf("orders by status (-got +want):\n%s", diff)
			}
		})
	}
}

func TestPassRefundLeases(t *testing.T) {
	t.Parallel()
	s := world{systemtest.New(t)}.start(t, system.Options{})
	s.post(body("refunded"))
	s.settle()
	store, now := dynamodb.NewRefunds(s.Store), time.Now()
	begin := func(id string, owner string) error {
		r, err := refund.New(refund.Draft{OrderID: "refunded", RefundID: id, Amount: 100, Reason: "duplicate"})
		must(t, err)
		_, err = store.Begin(t.Context(), r, order.Lease{Owner: owner, From: now, Until: now.Add(order.MaxLease)})
		return err
	}
	for _, id := range []string{"R1", "R2"} {
		must(t, begin(id, "killed"))
		if _, running := errors.AsType[*order.InProgressError](begin(id, "another")); !running {
			t.Errorf("refund %s: got another attempt under a running lease, want an InProgressError", id)
		}
	}
	must(t, s.PassRefundLeases(t.Context()))
	now = now.Add(time.Millisecond) // a lease includes its last instant
	must(t, begin("R1", "another"))
	must(t, begin("R2", "another"))
	account, err := store.Account(t.Context(), "refunded")
	must(t, err)
	for o, err := range s.Orders(t.Context()) {
		must(t, err)
		claim := cmpopts.IgnoreFields(refund.Item{}, "Fingerprint", "Owner")
		if diff := cmp.Diff(o.Refunds, account.Items, cmpopts.IgnoreTypes(time.Time{}), claim); diff != "" || o.Left != account.Left() {
			t.Errorf("%d left, want %d; refunds (-scanned +loaded):\n%s", o.Left, account.Left(), diff)
		}
	}
}

// look invokes the function of the schedule until the order has a status.
func (o *running) look(id order.ID, want order.Status) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 5*time.Minute)
	defer cancel()
	for {
		if err := o.Look(ctx); err != nil {
			o.t.Fatal(err)
		}
		r, err := o.Store.Load(ctx, id)
		if err != nil {
			o.t.Fatal(err)
		}
		if r.Status == want {
			return
		}
		time.Sleep(100 * time.Millisecond) // its lease is on the real clock
	}
}

package webhook_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/dispute"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/adapters/stripe/webhook"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestAnEventOfARefundIsAHint(t *testing.T) {
	t.Parallel()
	const ofOurs = `{"id":"re_1","payment_intent":"pi_3Pretend","metadata":{"orderId":"ORD-1","scope":"test","refundId":"R1"}}`
	ours := order.Hint{OrderID: "ORD-1", Scope: rigtest.Scope, Intent: rigtest.IntentID, Status: order.Paid, Refunded: true}
	others := order.Hint{Intent: rigtest.IntentID, Status: order.Paid, Refunded: true}
	for claim, tt := range map[string]struct {
		kind, object string
		want         order.Hint
	}{
		"made":                    {"refund.created", ofOurs, ours},
		"changed":                 {"refund.updated", ofOurs, ours},
		"failed":                  {"refund.failed", ofOurs, ours},
		"of an older API version": {"charge.refund.updated", ofOurs, ours},
		"of the charge": {
			"charge.refunded", `{"id":"ch_1","payment_intent":"pi_3Pretend","metadata":{"orderId":"ORD-1","scope":"test"}}`, ours,
		},
		"in the Dashboard":       {"refund.created", `{"id":"re_1","payment_intent":"pi_3Pretend","metadata":{}}`, others},
		"of an invalid order":    {"refund.created", `{"id":"re_1","payment_intent":"pi_3Pretend","metadata":{"orderId":"no order"}}`, others},
		"of another API version": {"refund.updated", `{"id":5,"payment_intent":"pi_3Pretend","status":{}}`, others},
		"without an intent":      {"refund.created", `{"id":"re_1","payment_intent":null}`, order.Hint{}},
		"not a refund":           {"refund.created", `{"payment_intent":5}`, order.Hint{}},
		"another event":          {"refund.reversed", ofOurs, order.Hint{}},
	} {
		e, err := webhook.ParseEvent(snapshot(tt.kind, tt.object))
		if err != nil || e.Hint != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", claim, e.Hint, err, tt.want)
		}
	}
}

// What the double sends is what the webhook reads.
func TestEventsOfTheDoubleAreHints(t *testing.T) {
	t.Parallel()
	p := rigtest.Prepare(t, stripetest.Succeeds)
	_, err := p.Confirm(1)
	rigtest.Must(t, err)
	var events []stripetest.Event
	p.Machine(func(m *stripetest.Machine) {
		r, err := m.RefundInDashboard(p.Now(), string(p.Intent.ID), 500)
		rigtest.Must(t, err)
		rigtest.Must(t, m.ChangeRefund(r.ID, stripetest.RefundFailed))
		events = m.Events()[1:]
	})
	for _, e := range events {
		want := order.Hint{Intent: p.Intent.ID, Status: order.Paid, Refunded: true}
		if got, err := webhook.ParseEvent(e.Body(signedAt())); err != nil || got.Hint != want {
			t.Errorf("%s: got %+v, %v, want %+v", e.Type, got.Hint, err, want)
		}
	}
	if len(events) != 4 {
		t.Errorf("got %d events, want 4", len(events))
	}
}

func TestAnEventOfADisputeIsAHint(t *testing.T) {
	t.Parallel()
	const disputed = `{"id":"du_1","status":"lost","payment_intent":"pi_3Pretend"}`
	hint := order.Hint{Intent: rigtest.IntentID, Status: order.Paid, Disputed: true}
	for claim, tt := range map[string]struct {
		kind, object string
		want         order.Hint
	}{
		"opened":                  {"charge.dispute.created", disputed, hint},
		"changed":                 {"charge.dispute.updated", disputed, hint},
		"closed":                  {"charge.dispute.closed", disputed, hint},
		"another API version":     {"charge.dispute.closed", `{"id":5,"payment_intent":"pi_3Pretend","status":{}}`, hint},
		"funds were withdrawn":    {"charge.dispute.funds_withdrawn", disputed, order.Hint{}},
		"a charge without intent": {"charge.dispute.created", `{"id":"du_1","payment_intent":null}`, order.Hint{}},
		"not a dispute":           {"charge.dispute.created", `{"payment_intent":5}`, order.Hint{}},
	} {
		e, err := webhook.ParseEvent(snapshot(tt.kind, tt.object))
		if err != nil || e.Hint != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", claim, e.Hint, err, tt.want)
		}
	}
	thin := []byte(`{"id":"evt_1","object":"v2.core.event","type":"charge.dispute.created","created":"2026-09-21T13:33:20Z",` +
		`"related_object":{"id":"du_1","type":"dispute","url":"/v1/disputes/du_1"}}`)
	if e, err := webhook.ParseEvent(thin); err != nil || e.Hint != (order.Hint{}) {
		t.Errorf("a thin event: got %+v, %v, want no hint", e.Hint, err)
	}
}

// disputedOrder is an order that was paid and then disputed in a Stripe double, behind an
// endpoint for the events.
type disputedOrder struct {
	*stripetest.Server

	t        *testing.T
	store    *ordertest.Memory
	endpoint *webhook.Endpoint
}

func disputeOrder(t *testing.T) disputedOrder {
	t.Helper()
	s := rigtest.NewStripe(t)
	options, store := rigtest.Options(t, s.URL, nil), new(ordertest.Memory)
	payments := charge.New(options)
	p := order.Processor{Claims: store, Payments: payments, Scope: rigtest.Scope, Now: s.Now, ConfirmTime: time.Second}
	lease := order.Lease{Owner: "first", From: s.Now(), Until: s.Now().Add(time.Minute)}
	if got := p.Process(t.Context(), rigtest.NewOrder(t, "pm_card_visa"), s.Now(), lease); got.Status != order.Paid {
		t.Fatalf("got %+v, want a paid order", got)
	}
	s.Machine(func(m *stripetest.Machine) {
		_, err := m.OpenDispute(s.Now(), "pi_000001")
		rigtest.Must(t, err)
	})
	follower := &order.DisputeFollower{
		Follower: order.Follower{Records: store, Payments: payments, Scope: rigtest.Scope, Now: s.Now},
		Disputes: dispute.New(options), Recorder: store,
	}
	return disputedOrder{s, t, store, &webhook.Endpoint{
		Secrets: []string{endpointSecret}, Follow: follower.Follow, Now: s.Now,
		Log: slog.New(slog.DiscardHandler), Count: func(string) {},
	}}
}

func (d disputedOrder) lose() {
	d.Machine(func(m *stripetest.Machine) { rigtest.Must(d.t, m.CloseDispute("du_000001", false)) })
}

// deliver sends the events of these numbers: 2 is the dispute's opening, 3 its end.
func (d disputedOrder) deliver(numbers ...int) {
	d.t.Helper()
	var events []stripetest.Event
	d.Machine(func(m *stripetest.Machine) { events = m.Events() })
	for _, n := range numbers {
		body := events[n-1].Body(time.Unix(1_767_225_600, 0))
		r := httptest.NewRequestWithContext(d.t.Context(), http.MethodPost, "/stripe/webhook", bytes.NewReader(body))
		r.Header.Set("Stripe-Signature", stripetest.Signature(body, d.Now(), endpointSecret))
		w := httptest.NewRecorder()
		if d.endpoint.ServeHTTP(w, r); w.Code != http.StatusOK {
			d.t.Errorf("event %d: got %d, want 200", n, w.Code)
		}
	}
}

// history returns the types of the order's events, and the status of its dispute.
func (d disputedOrder) history() (all []string) {
	d.t.Helper()
	r, err := d.store.Load(d.t.Context(), "ORD-1")
	rigtest.Must(d.t, err)
	for _, e := range r.Events {
		all = append(all, e.Type())
	}
	return append(all, string(r.Dispute.Status))
}

func TestWebhooksOfADisputeEndInOneHistory(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		late    time.Duration
		numbers []int
	}{
		"in order":        {0, []int{2, 3}},
		"reversed":        {0, []int{3, 2}},
		"three times":     {0, []int{2, 2, 2, 3, 3, 3}},
		"three days late": {72 * time.Hour, []int{3, 2}},
		"only the first":  {0, []int{2}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			d := disputeOrder(t)
			d.lose()
			d.Advance(tt.late)
			d.deliver(tt.numbers...)
			if diff := cmp.Diff(d.history(), []string{"order.paid", "order.dispute_lost", "lost"}); diff != "" {
				t.Errorf("events and dispute (-got +want):\n%s", diff)
			}
		})
	}
	t.Run("as it happens, then all of it again", func(t *testing.T) {
		t.Parallel()
		d := disputeOrder(t)
		d.deliver(2)
		d.lose()
		d.deliver(3, 2, 1, 3)
		if diff := cmp.Diff(d.history(), []string{"order.paid", "order.disputed", "order.dispute_lost", "lost"}); diff != "" {
			t.Errorf("events and dispute (-got +want):\n%s", diff)
		}
	})
}

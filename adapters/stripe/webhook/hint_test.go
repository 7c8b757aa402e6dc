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
	p := order.Processor{Store: store, Payments: payments, Scope: rigtest.Scope, Now: s.Now, ConfirmTime: time.Second}
	lease := order.Lease{Owner: "first", From: s.Now(), Until: s.Now().Add(time.Minute)}
	if got := p.Process(t.Context(), rigtest.NewOrder(t, "pm_card_visa"), s.Now(), lease); got.Status != order.Paid {
		t.Fatalf("got %+v, want a paid order", got)
	}
	s.Machine(func(m *stripetest.Machine) {
		_, err := m.OpenDispute(s.Now(), "pi_000001")
		rigtest.Must(t, err)
	})
	follower := &order.DisputeFollower{
		Follower: order.Follower{Store: store, Payments: payments, Scope: rigtest.Scope, Now: s.Now},
		Disputes: dispute.New(options),
	}
	return disputedOrder{s, t, store, &webhook.Endpoint{
		Secrets: []string{endpointSecret}, Follow: follower.Follow, Now: s.Now,
		Log: slog.New(slog.DiscardHandler), Count: func(string) {},
	}}
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
		before  []int // delivered before the dispute is lost
		late    time.Duration
		numbers []int
	}{
		"in order":        {nil, 0, []int{2, 3}},
		"reversed":        {nil, 0, []int{3, 2}},
		"three times":     {nil, 0, []int{2, 2, 2, 3, 3, 3}},
		"three days late": {nil, 72 * time.Hour, []int{3, 2}},
		"only the first":  {nil, 0, []int{2}},

		"as it happens, then all of it again": {[]int{2}, 0, []int{3, 2, 1, 3}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			d := disputeOrder(t)
			d.deliver(tt.before...)
			d.Machine(func(m *stripetest.Machine) { rigtest.Must(t, m.CloseDispute("du_000001", false)) })
			d.Advance(tt.late)
			d.deliver(tt.numbers...)
			want := []string{"order.paid", "order.dispute_lost", "lost"}
			if tt.before != nil {
				want = []string{"order.paid", "order.disputed", "order.dispute_lost", "lost"}
			}
			if diff := cmp.Diff(d.history(), want); diff != "" {
				t.Errorf("events and dispute (-got +want):\n%s", diff)
			}
		})
	}
}

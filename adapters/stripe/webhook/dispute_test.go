package webhook_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/dispute"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/adapters/stripe/webhook"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// What the double sends is what the webhook reads.
func TestEventsOfTheDoubleAreHints(t *testing.T) {
	p := rigtest.Prepare(t, stripetest.Succeeds)
	_, err := p.Confirm(1)
	rigtest.Must(t, err)
	p.Refund(p.Intent.ID, 500)
	var events []stripetest.Event
	p.Do(func(m *stripetest.Machine, _ time.Time) error {
		err := m.ChangeRefund("re_000001", stripetest.RefundFailed)
		events = m.Events()[1:]
		return err
	})
	for _, e := range events {
		want := settle.Hint{Intent: p.Intent.ID, Status: order.Paid, Refunded: true}
		if got, err := webhook.ParseEvent(e.Body(signedAt())); err != nil || got.Hint != want {
			t.Errorf("%s: got %+v, %v, want %+v", e.Type, got.Hint, err, want)
		}
	}
	if len(events) != 4 {
		t.Errorf("got %d events, want 4", len(events))
	}
}

func TestWebhooksOfADisputeEndInOneHistory(t *testing.T) {
	for claim, tt := range map[string]struct {
		before  []int // events that are delivered before the dispute is lost: 2 is its opening, 3 its end
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
			s, store := rigtest.NewStripe(t, stripetest.Rules{}), new(ordertest.Memory)
			p := order.Processor{Store: store, Payments: s.Payments, Scope: rigtest.Scope, Now: s.Now, ConfirmTime: time.Second}
			lease := order.Lease{Owner: "first", From: s.Now(), Until: s.Now().Add(time.Minute)}
			if got := p.Process(t.Context(), s.Order, s.Now(), lease); got.Status != order.Paid {
				t.Fatalf("got %+v, want a paid order", got)
			}
			id := s.Dispute("pi_000001")
			follower := &settle.Follower{
				Store: store, Payments: s.Payments, Scope: rigtest.Scope, Now: s.Now,
				Disputes: dispute.New(s.Options),
			}
			endpoint := &webhook.Endpoint{
				Secrets: []string{endpointSecret}, Follow: follower.Follow, Now: s.Now,
				Log: slog.New(slog.DiscardHandler), Count: func(string) {},
			}
			deliver(t, s, endpoint, tt.before)
			s.Do(func(m *stripetest.Machine, _ time.Time) error { return m.CloseDispute(string(id), false) })
			s.Advance(tt.late)
			deliver(t, s, endpoint, tt.numbers)
			r, err := store.Load(t.Context(), "ORD-1")
			rigtest.Must(t, err)
			got := []string{string(r.Dispute.Status)}
			for _, e := range r.Events {
				got = append(got, e.Type())
			}
			want := []string{"lost", "order.paid", "order.dispute_lost"}
			if tt.before != nil {
				want = []string{"lost", "order.paid", "order.disputed", "order.dispute_lost"}
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("dispute and events (-got +want):\n%s", diff)
			}
		})
	}
}

// deliver sends the events of these numbers to an endpoint.
func deliver(t *testing.T, s *rigtest.Stripe, to http.Handler, numbers []int) {
	t.Helper()
	var events []stripetest.Event
	s.Machine(func(m *stripetest.Machine) { events = m.Events() })
	for _, n := range numbers {
		body := events[n-1].Body(time.Unix(1_767_225_600, 0))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/stripe/webhook", bytes.NewReader(body))
		r.Header.Set("Stripe-Signature", stripetest.Signature(body, s.Now(), endpointSecret))
		w := httptest.NewRecorder()
		if to.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Errorf("event %d: got %d, want 200", n, w.Code)
		}
	}
}

package system_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestDisputes runs both functions over one table: a customer disputes a charge, and the
// bank gives the money back.
func TestDisputes(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	s := w.start(t, generous(system.Options{Webhook: w.Build(t, "functions/webhook")}))
	s.post(bodyWith("card", "pm_card_visa"))
	s.settle()
	for _, act := range []func(*stripetest.Machine) error{
		func(m *stripetest.Machine) error {
			_, err := m.OpenDispute(s.Stripe.Now(), m.Intents()[0].ID)
			return err
		},
		func(m *stripetest.Machine) error { return m.CloseDispute("du_000001", false) },
	} {
		s.Stripe.Machine(func(m *stripetest.Machine) { must(t, act(m)) })
		must(t, s.Heard(t.Context()))
	}
	for _, sent := range s.Events.Sent() {
		if sent.Status != http.StatusOK {
			t.Errorf("%s: got %d, want 200", sent.Event.Type, sent.Status)
		}
	}
	b := s.settle()
	r := b.Orders["card"]
	got := []string{string(r.Status), string(r.Dispute.ID), string(r.Dispute.Status)}
	for _, e := range r.Events {
		got = append(got, e.Type())
	}
	want := []string{
		string(order.Paid), "du_000001", string(order.DisputeLost), "order.paid", "order.disputed", "order.dispute_lost",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("status, dispute and events (-got +want):\n%s", diff)
	}
	if n := strings.Count(s.log.Text(), `"Disputed":[1]`); n != 1 {
		t.Errorf("got the metric Disputed %d times, want once:\n%s", n, s.log.Text())
	}
}

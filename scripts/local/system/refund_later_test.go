package system_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestARefundThatTheBankReturns has a refund that succeeded, and that the bank returns
// three days later. Its id is used up, and its amount may go back under another one.
func TestARefundThatTheBankReturns(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	o := generous(system.Options{
		Webhook: w.Build(t, "functions/webhook"), Reconcile: w.Build(t, "functions/reconcile"),
	})
	const id = "returned"
	deliver := func(refundID string) func(*running) {
		return func(s *running) { s.send(refundBody(id, refundID, fullAmount)) }
	}
	bankReturns := func(s *running) {
		s.pass(3 * day)
		s.Stripe.Machine(func(m *stripetest.Machine) { must(t, m.ChangeRefund("re_000001", stripetest.RefundFailed)) })
	}
	look := func(s *running) { // the schedule at orders that wait, an operator at the charge
		must(t, s.Look(t.Context()))
		_, err := order.Refresh(t.Context(), s.Store, s.Payments, system.Scope, id, s.Stripe.Now())
		must(t, err)
	}

	type statuses = map[refund.ID]refund.Status
	made := refunded{order.Refunded, statuses{"R-1": refund.Succeeded}, fullAmount, fullAmount, 1, ""}
	unnoticed := refunded{order.Refunded, statuses{"R-1": refund.Succeeded}, fullAmount, 0, 0, ""}
	parked := refunded{order.Refunded, statuses{"R-1": refund.Succeeded}, fullAmount, 0, 0, refund.ReasonExceeds}
	refreshed := refunded{order.Paid, statuses{"R-1": refund.Failed}, 0, 0, 0, refund.ReasonExceeds}
	returned := refunded{order.Paid, statuses{"R-1": refund.Failed}, 0, 0, 0, ""}
	again := refunded{order.Refunded, statuses{"R-1": refund.Failed, "R-2": refund.Succeeded}, fullAmount, fullAmount, 1, ""}

	type step struct {
		claim string
		act   func(*running)
		want  refunded
	}
	for claim, tt := range map[string]struct {
		deliveries func(stripetest.Event) []time.Duration
		steps      []step
	}{
		"is recorded by its webhook": {nil, []step{
			{"R-1 is made", deliver("R-1"), made},
			{"the bank returns it", bankReturns, returned},
			{"the message of R-1 comes again", deliver("R-1"), returned},
			{"R-2 is made", deliver("R-2"), again},
			{"the message of R-1 comes again after that", deliver("R-1"), again},
		}},
		"is noticed only by a refresh of its order's refunds if its webhook is lost": {withoutFailures, []step{
			{"R-1 is made", deliver("R-1"), made},
			{"the bank returns it", bankReturns, unnoticed},
			{"schedule and operator look at the order", look, unnoticed},
			{"R-2 exceeds what the row has left", deliver("R-2"), parked},
			{"the refunds are refreshed", func(s *running) { s.refresh(id) }, refreshed},
			{"R-2 is redriven", func(s *running) { redrive(t, s) }, again},
			{"the message of R-1 comes again", deliver("R-1"), again},
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Deliveries = tt.deliveries
			s := w.start(t, o)
			s.post(body(id))
			s.drain()
			for _, step := range tt.steps {
				step.act(s)
				s.drain()
				must(t, s.Heard(t.Context()))
				if diff := cmp.Diff(s.refunded(id), step.want); diff != "" {
					t.Errorf("%s (-got +want):\n%s", step.claim, diff)
				}
			}
			if n := s.Stripe.Count(stripetest.CreateRefund); n != 2 {
				t.Errorf("got %d requests for refunds, want one for R-1 and one for R-2", n)
			}
			s.settle()
		})
	}
}

// withoutFailures loses the webhooks of failed refunds.
func withoutFailures(e stripetest.Event) []time.Duration {
	if e.Refund != nil && e.Refund.Status == stripetest.RefundFailed {
		return nil
	}
	return []time.Duration{0}
}

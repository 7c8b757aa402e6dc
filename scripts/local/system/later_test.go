package system_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestAfterTheCharge runs the functions that work after the charge over one table: what
// Stripe reports later settles the orders, and every transition is published.
func TestAfterTheCharge(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	o := stocked(20, system.Options{
		Webhook: w.Build(t, "functions/webhook"), Reconcile: w.Build(t, "functions/reconcile"),
		Publish: w.Build(t, "functions/publish"), Env: map[string]string{"STOCK_HOLD": "1ns"},
	})
	for claim, deliveries := range map[string]func(stripetest.Event) []time.Duration{
		"webhooks settle what Stripe reports later": nil,
		"webhooks three times, reversed and three days late settle the same": func(e stripetest.Event) []time.Duration {
			late := 72*time.Hour - time.Duration(e.Number)*time.Hour
			return []time.Duration{late, late + time.Minute, late + 2*time.Minute}
		},
		"without webhooks the schedule settles what it can": func(stripetest.Event) []time.Duration { return nil },
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Deliveries = deliveries
			s := w.start(t, o)
			later(s, !strings.HasPrefix(claim, "without"))
		})
	}
	t.Run("one trace id finds an order everywhere but at Stripe", func(t *testing.T) {
		t.Parallel()
		traced(w.start(t, o))
	})
}

// later lets Stripe report on orders after their messages were settled.
func later(s *running, heard bool) {
	s.t.Helper()
	s.post(body("card"), body("back"), bodyWith("bank", needsUser), bodyWith("leaves", needsUser),
		bodyWith("days", takesDays), bodyWith("bounces", takesDays))
	b := s.settle()
	s.wantShirts(b, 8, 8, 4)
	s.post(refundBody("back", "R-1", fullAmount))
	s.drain()
	s.Stripe.Machine(func(m *stripetest.Machine) {
		now := s.Stripe.Now()
		intent := func(id order.ID) string { return string(b.Orders[id].Intent) }
		_, err := m.OpenDispute(now, intent("card"))
		systemtest.Must(s.t, err)
		systemtest.Must(s.t, m.CloseDispute("du_000001", false))
		systemtest.Must(s.t, m.CustomerPays(now, intent("bank")))
		systemtest.Must(s.t, m.Settle(now, intent("days"), true))
		systemtest.Must(s.t, m.Settle(now, intent("bounces"), false))
		if heard { // nothing else reports that a bank returned a refund
			systemtest.Must(s.t, m.ChangeRefund("re_000001", stripetest.RefundFailed))
		}
	})
	for range 4 {
		systemtest.Must(s.t, s.Heard(s.t.Context()))
		s.Advance(day)
	}
	for range 2 { // what the first run cancels is looked at again
		systemtest.Must(s.t, s.Look(s.t.Context()))
	}
	for _, sent := range s.Events.Sent() {
		if sent.Status != http.StatusOK {
			s.t.Errorf("%s: got %d, want 200", sent.Event.Type, sent.Status)
		}
	}
	b = s.settle()
	for id, want := range map[order.ID]outcome{
		"bank": {order.Paid, 1, 2}, "days": {order.Paid, 1, 2}, "leaves": {order.Canceled, 0, 2},
	} {
		s.want(b, id, want)
	}
	s.wantShirts(b, 12, 0, 8)
	if i, _ := b.Orders["back"].Refund("R-1"); heard && (i.Status != refund.Failed || b.Orders["card"].Dispute.Status != order.DisputeLost) {
		s.t.Errorf("got the refund %s and %+v, want it failed, and the dispute lost", i.Status, b.Orders["card"].Dispute)
	}
}

// traced sends an order twice, each time with another trace.
func traced(s *running) {
	s.t.Helper()
	const first, second = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, trace := range []string{first, second} {
		s.postDrafts(sqstest.Draft{Body: bodyWith("days", takesDays), Attributes: map[string]sqstest.Attribute{
			sqs.AttrTrace: sqstest.Text("00-" + trace + "-b7ad6b7169203331-01"),
		}})
		s.settle()
	}
	s.Stripe.Machine(func(m *stripetest.Machine) { systemtest.Must(s.t, m.Settle(s.Stripe.Now(), m.Intents()[0].ID, true)) })
	systemtest.Must(s.t, s.Heard(s.t.Context()))
	s.settle()
	for item, err := range s.Items(s.t.Context(), s.Options.Table) {
		systemtest.Must(s.t, err)
		if !strings.Contains(system.Text(item, "traceparent"), first) {
			s.t.Errorf("got %v, want the first trace", item)
		}
	}
	log := s.log.Text()
	if lines := strings.Count(log, `"trace_id":"`+first); lines < 4 || strings.Count(log, second) != 1 {
		s.t.Errorf("got %d lines, want 4 or more, one of which has the second trace:\n%s", lines, log)
	}
	s.Stripe.Machine(func(m *stripetest.Machine) {
		if sent := fmt.Sprintf("%+v", *m.Intents()[0]); strings.Contains(sent, first) {
			s.t.Errorf("got the intent %s, want it without a trace", sent)
		}
	})
}

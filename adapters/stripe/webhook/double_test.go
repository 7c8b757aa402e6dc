package webhook_test

import (
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/adapters/stripe/webhook"
	"orderonce/domain/order"
	"orderonce/domain/settle"
)

// What the double sends is what the webhook reads.
func TestEventsOfTheDoubleAreHints(t *testing.T) {
	p := rigtest.Prepare(t, "pm_card_visa")
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

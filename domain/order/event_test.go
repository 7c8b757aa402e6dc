package order_test

import (
	"testing"

	"orderonce/domain/order"
)

func TestEvents(t *testing.T) {
	dispute := func(s order.DisputeStatus) order.Dispute { return order.Dispute{ID: "dp_1", Status: s} }
	refund := func(status string) order.RefundEvent { return order.RefundEvent{ID: "R1", Status: status} }
	outside := order.RefundEvent{Status: order.RefundedOutside, Amount: 1}
	for _, tt := range []struct {
		event order.Event
		name  string
		valid bool
	}{
		{order.Event{From: order.Open, To: order.Paid}, "order.paid", true},
		{order.Event{From: order.Paid, To: order.Open}, "order.open", false},
		{order.Event{From: order.Paid, To: order.Paid}, "order.paid", false},
		{order.Event{From: order.Paid, To: order.Paid, Dispute: dispute(order.DisputeOpen)}, "order.disputed", true},
		{order.Event{From: order.Paid, To: order.Paid, Dispute: dispute(order.DisputeLost)}, "order.dispute_lost", true},
		{order.Event{From: order.Open, To: order.Paid, Dispute: dispute(order.DisputeWon)}, "order.dispute_won", false},
		{order.Event{From: order.Paid, To: order.Refunded, Refund: refund("succeeded")}, "refund.succeeded", true},
		{order.Event{From: order.Paid, To: order.Paid, Refund: refund("refused")}, "refund.refused", true},
		{order.Event{From: order.Declined, To: order.Refunded, Refund: refund("pending")}, "refund.pending", false},
		{order.Event{From: order.Paid, To: order.PartiallyRefunded, Refund: outside}, "order.refunded_outside", true},
	} {
		if got := tt.event.Type(); got != tt.name {
			t.Errorf("got %s, want %s", got, tt.name)
		}
		if err := tt.event.Validate(); (err == nil) != tt.valid {
			t.Errorf("%s: got %v, want valid %t", tt.name, err, tt.valid)
		}
	}
}

package run

import (
	"fmt"

	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// Refunds is what became of the refunds, and of the orders that operators canceled. It
// counts refundIds unless stated otherwise.
type Refunds struct {
	Asked      int // in at least one message
	Made       int // Stripe has one that counts
	Doubled    int // Stripe has more than one that counts
	Refused    int // by Stripe
	Unknown    int // may have been made; a person compares
	Exceeding  int // parked: more than was left of the charge
	NotCharged int // parked: the order was not charged
	Messages   int // of the workload
	Deliveries int // of these messages
	Kills      int // of processes that had one in their batch
	Canceled   int // orders
}

// addRefunds adds Stripe's refunds.
func (b *audit) addRefunds(all []*stripetest.Refund) {
	for _, r := range all {
		id := keyOf(r).order
		b.refunds[id] = append(b.refunds[id], system.RefundOf(r))
		if b.workload.numberOf(id) < 0 {
			b.report("I19", fmt.Sprintf("refund %s is of the unknown order %q", r.ID, id))
		}
	}
}

// parkedAs returns the reason of a dead letter.
func (b *audit) parkedAs(name string) (reason order.Reason, parked bool) {
	m, parked := b.dead[name]
	return order.Reason(m.Attributes[sqs.AttrReason].Text), parked
}

// countRefunds counts what became of the refunds that were asked of one order.
func (b *audit) countRefunds(sent []refundMessage, row Row) {
	add := func(n *int, condition bool) {
		if condition {
			*n++
		}
	}
	var o invariants.Order
	if row.Order != nil {
		o = *row.Order
	}
	of := invariants.Books{Refunds: map[order.ID][]invariants.Refund{o.OrderID: b.refunds[row.OrderID]}}
	b.back.Messages += len(sent)
	add(&b.back.Canceled, o.Status == order.Canceled)
	seen := map[refund.ID]bool{}
	for _, m := range sent {
		if seen[m.id] {
			continue
		}
		seen[m.id] = true
		item, known := o.Refund(m.id)
		reason, _ := b.parkedAs(m.name())
		made := of.Made(o.OrderID, m.id)
		add(&b.back.Made, made > 0)
		add(&b.back.Doubled, made > 1)
		add(&b.back.Refused, item.Status == refund.Refused)
		add(&b.back.Unknown, item.Status == refund.Unknown)
		add(&b.back.Exceeding, !known && reason == refund.ReasonExceeds)
		add(&b.back.NotCharged, !known && reason == refund.ReasonNotCharged)
	}
	b.back.Asked += len(seen)
}

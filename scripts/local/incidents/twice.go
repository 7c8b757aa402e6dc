package incidents

import (
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// chargedTwice has a customer who ordered twice, one whose payment only holds the money,
// and one whom another system charged as well.
func chargedTwice() Runbook {
	var other string
	return Runbook{
		Title: "4. A customer says they were charged twice",
		Seen: `Four customers say that they were charged twice. One ordered ORD-4001 and, by mistake,
ORD-4002. One has two lines of ORD-4003 at the bank. One has two of ORD-4004.
One misses the refund of ORD-4005.`,
		happens: func(i *Incident) {
			i.post(
				Sale("ORD-4001", 2400, Pays), Sale("ORD-4002", 2400, Pays),
				Sale("ORD-4003", 2400, Asks), Sale("ORD-4004", 2400, Pays),
				Sale("ORD-4005", 2400, Pays),
				`{"type":"refund","orderId":"ORD-4005","refundId":"R-1","amount":2400,"reason":"requested_by_customer"}`,
			)
			i.Stripe.Machine(func(m *stripetest.Machine) {
				var err error
				other, err = ChargeElsewhere(m, i.Stripe.Now(), system.PretendKey, "ORD-4004", system.Scope, 2400, true)
				must(err)
				_, err = ChargeElsewhere(m, i.Stripe.Now(), system.PretendKey, "ORD-4001", system.Scope, 2400, false)
				must(err)
				must(m.ChangeRefund(m.Refunds()[0].ID, stripetest.RefundFailed)) // and no webhook reports it
			})
			i.foreign[other] = true
		},
		events: []Event{{Name: "the other payment is refunded in the Dashboard", happens: func(i *Incident) {
			i.Stripe.Machine(func(m *stripetest.Machine) {
				_, err := m.RefundInDashboard(i.Stripe.Now(), other, 2400)
				must(err)
			})
		}}},
		leads: map[order.ID]order.Status{
			"ORD-4001": order.Paid, "ORD-4002": order.Refunded, "ORD-4003": order.ActionRequired, "ORD-4004": order.Paid,
			"ORD-4005": order.Refunded,
		},
	}
}

package incidents

import (
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// leakedKey has a thief who gave money of an order back. The key is rolled before the
// function has the new one, unless that is deployed first.
func leakedKey() Runbook {
	deployed := false
	return Runbook{
		Title:   "6. The Stripe key leaked",
		Seen:    `Somebody finds the key of Stripe in a public commit.`,
		options: slowRetries,
		takes:   time.Hour,
		happens: func(i *Incident) {
			i.post(Sale("ORD-6001", 2400, Pays))
			i.Stripe.Machine(func(m *stripetest.Machine) {
				_, err := m.RefundInDashboard(i.Stripe.Now(), i.intent("ORD-6001"), 2000)
				must(err)
			})
		},
		events: []Event{
			{Name: "the old key expires", happens: func(i *Incident) {
				if !deployed {
					i.outage(stripetest.Fault{Kind: stripetest.Unauthorized, Times: -1})
				}
				i.post(Sale("ORD-6002", 2400, Pays))
				if !deployed && !i.halted {
					i.waits("ORD-6002")
				}
			}},
			{Name: "the new key is deployed", happens: func(i *Incident) {
				deployed = true
				i.ends()
			}},
		},
		leads: map[order.ID]order.Status{"ORD-6001": order.PartiallyRefunded, "ORD-6002": order.Paid},
	}
}

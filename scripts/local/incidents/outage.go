package incidents

import (
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// stripeDown has orders that Stripe did not answer, one of them after it was charged.
func stripeDown() Runbook {
	return Runbook{
		Title: "3. Stripe was down",
		Seen: `The alarms provider-unavailable and unknown-outcomes. status.stripe.com shows an outage.
Producers ask whether they should send their orders again.`,
		options: slowRetries,
		takes:   time.Hour,
		happens: func(i *Incident) {
			i.outage(
				stripetest.Fault{Kind: stripetest.Unavailable, OrderID: "ORD-3001", Times: -1},
				stripetest.Fault{Kind: stripetest.Unavailable, OrderID: "ORD-3002", Times: -1},
				stripetest.Fault{Kind: stripetest.LoseResponse, OrderID: "ORD-3003", On: stripetest.Confirm, Times: -1},
			)
			i.post(Sale("ORD-3001", 2400, Pays), Sale("ORD-3002", 2400, Pays), Sale("ORD-3003", 2400, Pays))
			i.waits("ORD-3001", "ORD-3002", "ORD-3003")
		},
		events: []Event{{Name: "Stripe answers again", happens: (*Incident).ends}},
		leads: map[order.ID]order.Status{
			"ORD-3001": order.Paid, "ORD-3002": order.Paid, "ORD-3003": order.Paid,
		},
	}
}

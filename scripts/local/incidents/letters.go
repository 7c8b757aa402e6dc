package incidents

import (
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// deadLettersArrived has a message for each verdict but look. The queue's retention is so
// short that an order that meets an outage is parked at once.
func deadLettersArrived() Runbook {
	return Runbook{
		Title: "2. Dead letters arrived",
		Seen: `The alarm dead-letters. Stripe was down for some days, and answers again. The producer's
developers say that ORD-2002, ORD-2005 and the second order under ORD-2003 were wrong: they
send corrected ones under new ids.`,
		options: func(_ *Incident, o *system.Options) {
			o.Env["FIRST_DELAY"], o.Env["QUEUE_RETENTION"] = "1m", "24h0m0.001s"
		},
		happens: func(i *Incident) {
			i.Stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
			i.post(Sale("ORD-2001", 2400, Pays))
			i.Stripe.Machine(func(m *stripetest.Machine) { m.Heal() })
			i.send(Sale("ORD-2002", 2400, Missing))
			i.drain()
			i.post(Sale("ORD-2003", 2400, Pays))
			i.send(Sale("ORD-2003", 9900, Pays))
			i.drain()
			i.post(Sale("ORD-2004", 2400, Declines))
			i.operate("cancel ORD-2004 --yes")
			i.send(`{"type":"refund","orderId":"ORD-2004","refundId":"R-1","amount":500,"reason":"duplicate"}`)
			i.send(`{"orderId":"ORD-2005","currency":"usd"}`)
			i.drain()
		},
		leads: map[order.ID]order.Status{
			"ORD-2001": order.Paid, "ORD-2002": order.Canceled, "ORD-2003": order.Paid, "ORD-2004": order.Canceled,
		},
	}
}

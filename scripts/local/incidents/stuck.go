package incidents

import (
	"strings"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// stuck kills the function twice, each time with the message lost as well: once when
// Stripe has charged the order, once when it has not.
func stuck() Runbook {
	at := map[string]stripetest.Endpoint{"ORD-1001": stripetest.Confirm, "ORD-1002": stripetest.Create}
	kills := func(i *Incident, o *system.Options) {
		o.FunctionTimeout, o.Visibility, o.Env = 0, 0, nil // the shortest lease
		o.AfterStripe = func(c stripetest.Call) {
			if at[c.OrderID] != c.Endpoint || i.running.Load() == nil {
				return
			}
			delete(at, c.OrderID)
			i.running.Load().Purge(func(m sqstest.Message) bool { return strings.Contains(m.Body, c.OrderID) })
			i.running.Load().Function.Kill(nil)
		}
	}
	return Runbook{
		Title:   "1. An order is stuck",
		options: kills,
		happens: func(i *Incident) {
			i.post(Sale("ORD-1001", 2400, Pays))
			i.post(Sale("ORD-1002", 2400, Pays))
			i.post(Sale("ORD-1003", 2400, Asks))
			i.Advance(2 * time.Hour) // the workers' leases are over
		},
		leads: map[order.ID]order.Status{
			"ORD-1001": order.Paid, "ORD-1002": order.Paid, "ORD-1003": order.Canceled,
		},
	}
}

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
		Title: "1. An order is stuck",
		Seen: `The alarm orders-waiting-open. Support asks about ORD-1001 and ORD-1002, which are open, and
the customer of ORD-1003 does not want it any more. Both queues are empty. The producer
still has its message of ORD-1002: scripts/orders/testdata/stuck.jsonl.`,
		options: kills,
		happens: func(i *Incident) {
			i.post(Sale("ORD-1001", 2400, Pays))
			i.post(Sale("ORD-1002", 2400, Pays))
			i.post(Sale("ORD-1003", 2400, Asks))
			for _, id := range []order.ID{"ORD-1001", "ORD-1002"} { // their workers are dead
				must(system.Until(i.ctx, time.Millisecond, func() (bool, error) {
					r, err := i.Store.Load(i.ctx, id)
					return r.Until.Before(i.Stripe.Now()), err
				}))
			}
		},
		leads: map[order.ID]order.Status{
			"ORD-1001": order.Paid, "ORD-1002": order.Paid, "ORD-1003": order.Canceled,
		},
	}
}

package incidents

import (
	"fmt"
	"strings"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
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

// wrongOrders represents 10,000 orders with 60: 20 that no release can read, 5 that were
// charged a hundredfold, and 35 of the same kind that wait behind them, among them two
// right ones.
func wrongOrders() Runbook {
	const charged, waiting, unreadable = 5, 35, 20
	wrong := func(n int) order.ID { return order.ID(fmt.Sprintf("WRONG-%03d", n)) }
	want := map[order.ID]order.Status{"ORD-7001": order.Paid, "ORD-7002": order.Paid}
	return Runbook{
		Title: "7. A producer sent 10,000 wrong orders",
		Seen: `A producer multiplied prices by 100: books of 24.00 USD came as 2,400.00 USD. Others of its
orders have no lines. It was stopped, and so is processing, but some were charged. ORD-7001
and ORD-7002, which wait, are right. The producer lists what its customers must get back:
scripts/orders/testdata/wrong-prices.csv.`,
		happens: func(i *Incident) {
			for n := range unreadable {
				i.send(fmt.Sprintf(`{"orderId":%q,"currency":"usd"}`, wrong(n+100)))
			}
			for n := range charged {
				i.post(Sale(wrong(n), 240000, Pays))
				want[wrong(n)] = order.PartiallyRefunded
			}
			i.stops()
			i.post(Sale("ORD-7001", 2400, Pays), Sale("ORD-7002", 2400, Pays))
			for n := range waiting {
				body := Sale(wrong(n+charged), 240000, Pays)
				if n%2 == 0 {
					body = strings.ReplaceAll(body, ":", ": ") // another program's JSON
				}
				i.send(body)
			}
		},
		leads: want,
		over: func(_ *Incident, b invariants.Books) (broken []string) {
			for id, o := range b.Orders {
				if o.Status == order.PartiallyRefunded && o.Left != 2400 {
					broken = append(broken, fmt.Sprintf("%s: %d left, want its right price", id, o.Left))
				}
			}
			return broken
		},
	}
}

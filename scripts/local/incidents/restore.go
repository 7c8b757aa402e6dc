package incidents

import (
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
)

// damagedTable is the table that the runbook restores.
const damagedTable = "orderonce-dev-orders"

// restoredTable restores the table to a moment before one order was paid and another one
// arrived. A message of each is delivered again afterwards, when Stripe has forgotten
// every idempotency key.
func restoredTable() Runbook {
	bodies := []string{
		Sale("ORD-5001", 2400, Pays), Sale("ORD-5002", 84900, Takes), Sale("ORD-5003", 2400, Pays),
		Sale("ORD-5004", 2400, Pays),
	}
	return Runbook{
		Title: "5. The table was restored from a backup",
		Seen: `The orders table was damaged two days ago. Processing was stopped at once, and the table is
restored to the moment before: steps 1 and 2 are done.`,
		takes:   48 * time.Hour,
		options: func(_ *Incident, o *system.Options) { o.Table = damagedTable + "-restored" },
		happens: func(i *Incident) {
			i.post(bodies[:2]...)
			backup := i.items()
			paid := i.intent("ORD-5002")
			i.Stripe.Machine(func(m *stripetest.Machine) { must(m.Settle(i.Stripe.Now(), paid, true)) })
			i.operate("refresh ORD-5002")
			i.post(bodies[2])
			i.begin(bodies[3])
			i.operate("cancel ORD-5004 --yes")
			i.stops()
			i.post(bodies...)
			i.Advance(48 * time.Hour)
			i.Stripe.Machine(func(m *stripetest.Machine) { m.ForgetKeys() })
			must(dynamodbtest.Create(i.ctx, i.administrator(), dynamodbtest.TableDefinition(damagedTable)))
			i.DropOnClose(i.ctx, damagedTable)
			i.put(damagedTable, i.items()...)
			i.remove(damagedTable, system.Item{"orderId": dynamodb.Text("ORD-5003"), "sk": dynamodb.Text("order")})
			i.remove(i.Options.Table, i.items()...)
			i.put(i.Options.Table, backup...)
		},
		events: map[string]func(*Incident){
			"processing is resumed": (*Incident).resumes,
		},
		leads: map[order.ID]order.Status{
			"ORD-5001": order.Paid, "ORD-5002": order.Paid, "ORD-5003": order.Paid, "ORD-5004": order.Canceled,
		},
	}
}

// begin claims an order as a worker does that dies before it prepares a payment.
func (i *Incident) begin(body string) {
	job, err := jobs.NewDecoder().Decode(body)
	must(err)
	now := i.Stripe.Now()
	_, err = order.Begin(i.ctx, i.Store, job.Order, order.Lease{Owner: "died", From: now, Until: now}, nil)
	must(err)
}

package incidents

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/settle"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
)

const damagedTable = "orderonce-dev-orders"

// kind is a kind of order: how it comes into its status, and what it has become when all
// is over.
type kind struct {
	status, end order.Status // when the table is damaged, and at the end
	message     string
	begins      func(*Incident, string)   // with the message; nil: it is processed
	goes        func(*Incident, order.ID) // on, later; nil: it does not
	// alone is the end if neither table has the order; "" if Stripe does not know it
	// either, or if the procedure leaves the number of sold units wrong.
	alone order.Status
}

type restorable struct {
	kind

	id order.ID
}

// kinds returns a kind of order for each status, and for each way into it.
func kinds(id order.ID) []kind {
	sale := func(method string) string { return Sale(id, 2400, method) }
	detached := "pm_of" + strings.TrimPrefix(string(id), "ORD-")
	return []kind{
		{order.Open, order.Paid, sale(Pays), died(afterBegin), nil, ""},
		{order.Open, order.Paid, sale(Pays), died(afterBind), nil, order.Paid},
		{order.Open, order.Paid, sale(Pays), died(afterConfirm), nil, ""},
		{order.Paid, order.Paid, sale(Pays), nil, nil, order.Paid},
		{order.Paid, order.Paid, sale(Takes), nil, bankAnswers(true), order.Paid},
		{order.Declined, order.Canceled, sale(Takes), nil, bankAnswers(false), order.Canceled},
		{order.Canceled, order.Canceled, sale(Asks), nil, canceled, order.Canceled},
		{order.Canceled, order.Canceled, sale(Pays), died(afterBegin), canceled, ""},
		{order.ActionRequired, order.ActionRequired, sale(Asks), nil, nil, order.Canceled},
		{order.Pending, order.Pending, sale(Takes), nil, nil, order.Pending},
		{order.Refused, order.Canceled, sale(Missing), nil, nil, ""},
		{order.Refused, order.Canceled, sale(detached), died(afterBind), func(i *Incident, _ order.ID) {
			i.Stripe.Machine(func(m *stripetest.Machine) { m.DetachMethod(detached) })
			i.post(sale(detached))
		}, order.Canceled},
		{order.OutOfStock, order.OutOfStock, of("VINYL", sale(Pays)), nil, nil, ""},
		{order.PartiallyRefunded, order.PartiallyRefunded, sale(Pays), nil, gives(500), order.PartiallyRefunded},
		{order.Refunded, order.Refunded, sale(Pays), nil, gives(2400), order.Refunded},
		{order.Refunded, order.Refunded, sale("pm_card_pendingRefund"), nil, gives(2400), order.Refunded},
		{order.Paid, order.Paid, sale(Pays), nil, disputed, order.Paid},
	}
}

func gives(cents int) func(*Incident, order.ID) {
	const message = `{"type":"refund","orderId":%q,"refundId":"R-1","amount":%d,"reason":"duplicate"}`
	return func(i *Incident, id order.ID) { i.post(fmt.Sprintf(message, id, cents)) }
}

func bankAnswers(pays bool) func(*Incident, order.ID) {
	return func(i *Incident, id order.ID) {
		intent := i.intent(id)
		i.Stripe.Machine(func(m *stripetest.Machine) { must(m.Settle(i.Stripe.Now(), intent, pays)) })
		i.operate("refresh " + string(id))
	}
}

func canceled(i *Incident, id order.ID) { i.operate("cancel " + string(id) + " --yes") }

// disputed disputes a charge, whose webhook arrives.
func disputed(i *Incident, id order.ID) {
	r, err := i.Store.Load(i.ctx, id)
	must(err)
	i.Stripe.Machine(func(m *stripetest.Machine) {
		d, err := m.OpenDispute(i.Stripe.Now(), string(r.Intent))
		must(err)
		opened := order.Dispute{ID: order.DisputeID(d.ID), Status: order.DisputeOpen, CreatedAt: d.Created}
		must(settle.RecordDispute(i.ctx, i.Store, r, opened, i.Stripe.Now()))
	})
}

// restorables returns the orders of the runbook, 50.. to 53..: those that are older than
// the backup, that change after it, that arrive after it, and that Stripe alone knows.
func restorables() (all [4][]restorable) {
	for age := range all {
		for n := range kinds("") {
			id := order.ID(fmt.Sprintf("ORD-5%d%02d", age, n+1))
			k := kinds(id)[n]
			if age == 3 {
				k.end = k.alone
			}
			if k.end != "" && (age != 1 || k.goes != nil) {
				all[age] = append(all[age], restorable{k, id})
			}
		}
	}
	return all
}

// restoredTable restores the table to a moment before most of its orders changed or
// arrived. Of some of them, the damaged table has no row either. The messages of all are
// delivered again afterwards, when Stripe has forgotten every idempotency key and the SKU
// that was short has come in.
func restoredTable() Runbook {
	all, leads := restorables(), map[order.ID]order.Status{}
	for _, o := range slices.Concat(all[:]...) {
		leads[o.id] = o.end
	}
	return Runbook{
		Title: "5. The table was restored from a backup",
		Seen: `The orders table was damaged two days ago. Processing was stopped at once, and the table is
restored to the moment before: steps 1, 2 and 4 are done. Stock is tracked: 75 BOOK are in store,
without what was paid. VINYL was sold out; 10 have come in and are counted.`,
		takes: 48 * time.Hour,
		options: func(_ *Incident, o *system.Options) {
			o.Table, o.Stock = damagedTable+"-restored", map[string]int64{"BOOK": 100, "VINYL": 0}
		},
		happens: func(i *Incident) {
			i.begins(slices.Concat(all[:2]...)...)
			i.goes(all[0]...)
			backup := i.items()
			i.begins(slices.Concat(all[2:]...)...)
			i.goes(slices.Concat(all[1:]...)...)
			i.stops()
			i.damaged(backup)
			i.operate("stock VINYL --add 10 --yes")
			i.Options.Stock["VINYL"] += 10
			i.Options.Stock["BOOK"]-- // will be kept for the order that is pending
			var messages []string
			for _, m := range i.posted {
				messages = append(messages, m.Body)
			}
			i.post(messages...)
		},
		events: []Event{
			{Name: "a colleague cancels each refused order", happens: func(i *Incident) {
				for _, o := range slices.Concat(all[:]...) {
					if o.status == order.Refused {
						canceled(i, o.id)
					}
				}
			}},
		},
		leads: leads,
	}
}

func (i *Incident) begins(orders ...restorable) {
	var messages []string
	for _, o := range orders {
		if o.begins != nil {
			o.begins(i, o.message)
		} else {
			messages = append(messages, o.message)
		}
	}
	i.post(messages...)
}

// goes lets orders come into the status that they have when the table is damaged.
func (i *Incident) goes(orders ...restorable) {
	for _, o := range orders {
		if o.goes != nil {
			o.goes(i, o.id)
		}
		if r, err := i.Store.Load(i.ctx, o.id); err != nil || r.Status != o.status {
			must(fmt.Errorf("order %s is %q, want %q: %w", o.id, r.Status, o.status, err))
		}
	}
}

// damaged moves what the table has into the damaged one, apart from the orders that
// Stripe alone knows, and puts the backup into its place.
func (i *Incident) damaged(backup []system.Item) {
	i.Advance(48 * time.Hour)
	i.Stripe.Machine(func(m *stripetest.Machine) { m.ForgetKeys() })
	must(dynamodbtest.Create(i.ctx, i.Client(), dynamodbtest.TableDefinition(damagedTable)))
	i.DropOnClose(i.ctx, damagedTable)
	all := i.items()
	i.remove(i.Options.Table, all...)
	i.put(i.Options.Table, backup...)
	i.put(damagedTable, slices.DeleteFunc(all, func(item system.Item) bool {
		return strings.HasPrefix(system.Text(item, "orderId"), "ORD-53")
	})...)
}

// step is the last one of a worker that dies.
type step int

const (
	afterBegin step = iota
	afterBind
	afterConfirm
)

// died processes an order as a worker does that dies on the way. Its message is lost.
func died(last step) func(*Incident, string) {
	return func(i *Incident, body string) {
		job, err := jobs.NewDecoder().Decode(body)
		must(err)
		i.posted = append(i.posted, invariants.Message{Job: job, Body: body})
		o, now := job.Order, i.Stripe.Now()
		lease := order.Lease{Owner: "died", From: now, Until: now}
		claim, err := order.Begin(i.ctx, i.Store, o, lease, o.Quantities())
		must(err)
		if last == afterBegin {
			return
		}
		intent, err := i.Payments.Prepare(i.ctx, o, order.PrepareKey(system.Scope, o.ID()))
		must(err)
		must(claim.Bind(i.ctx, i.Store, intent, now))
		if last == afterConfirm {
			_, err = i.Payments.Confirm(i.ctx, intent.ID, order.ConfirmKey(system.Scope, o.ID(), claim.Attempt))
			must(err)
		}
	}
}

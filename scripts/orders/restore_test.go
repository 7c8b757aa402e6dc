package main

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// damagedTable creates a table with the items of orders of the live one.
func (d *deployment) damagedTable(ids ...order.ID) rows {
	d.Helper()
	damaged := rows{d.T, d.client, d.create("damaged", dynamodbtest.TableDefinition)}
	for _, id := range ids {
		damaged.put(d.of(id)...)
	}
	return damaged
}

// Stripe remembers the keys of orders whose rows were lost.
func TestRestoreAfterAReusedKey(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	p.trackStock(20)
	deliver := func(id order.ID, method string) {
		p.deliver(ordertest.OrderWith(id, method), noon().Add(time.Minute))
	}
	p.process(pays, "SAME", "OTHER", "TWICE") // pi_000002 and more
	p.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Confirm})
	p.process(pays, "WAITS")
	for id, method := range map[order.ID]string{"SAME": pays, "OTHER": declines, "TWICE": declines, "WAITS": declines} {
		p.remove(p.of(id)...)
		deliver(id, method)
		p.park(order.ReasonKeyReused, bodyOf(id, method))
	}
	i, err := p.payments.Prepare(t.Context(), ordertest.Order("TWICE"), order.PrepareAgainKey(scope, "TWICE", 9))
	must(t, err)
	_, err = p.payments.Confirm(t.Context(), i.ID, order.ConfirmKey(scope, "TWICE", 9))
	must(t, err)
	p.another("NEW", "elsewhere", true)
	p.stripe.Advance(2 * time.Minute)
	p.steps(
		step{line: "show SAME", claim: "the same content", want: "status     paid\ncharged    once\nnothing: it is settled"},
		step{line: "show OTHER", code: 2, want: "key_reused\norders restore OTHER pi_000003\nwhose content is a conflict"},
		step{line: "dead-letters show OTHER", want: "different content: orders restore OTHER, then discard this with --force"},
		step{line: "restore OTHER", typed: "yes\n", code: 1, want: "pi_000003, succeeded\nbind its row to pi_000003\nnothing was changed"},
		step{line: "restore OTHER", typed: "OTHER\n", want: "restored: the row names pi_000003 and is paid"},
		step{line: "dead-letters show OTHER", want: "charged and settled\nthen discard this with --force"},
		step{line: "restore OTHER --yes", claim: "again", code: 1, want: "next       nothing\nno PaymentIntent to bind"},
		step{line: "restore OTHER pi_000002 --yes", claim: "another order's", code: 1, want: "orderId is \"SAME\""},
		step{line: "restore NEW --yes", claim: "another scope's", code: 1, want: "look for the order's row\nno PaymentIntent to bind"},
		step{line: "restore TWICE --yes", code: 1, want: "charged    2 TIMES\nseveral PaymentIntents took money: name the one"},
		step{line: "restore TWICE pi_000004 --yes", want: "the row names pi_000004 and is paid"},
		step{line: "restore WAITS --yes", claim: "not charged yet", want: "the row names pi_000005 and is open"},
		step{line: "show WAITS", before: func() { deliver("WAITS", pays) }, want: "status     paid\ncharged    once\nnothing: it is settled"},
	)
	if s, err := p.store.Stock(t.Context(), "MUG"); s.Reserved != 1 || err != nil {
		t.Errorf("got %+v, %v, want that of the lost row of WAITS reserved, until a recount", s, err)
	}
}

// What is brought back and what is left alone, and why, is tested in package salvage.
func TestRestoreFromADamagedTable(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	older := []order.ID{"OLDER", "EDITED", "HELD", "MEANWHILE"}
	for _, id := range older { // no intent is bound
		d.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Create})
		d.process(pays, id)
	}
	d.process(pays, "SAME", "REFUNDED")
	backup := map[order.ID][]dynamodb.Item{}
	for _, id := range append(older, "SAME", "REFUNDED") {
		backup[id] = d.of(id)
	}
	for _, id := range []order.ID{"OLDER", "EDITED", "LOST"} {
		d.deliver(ordertest.OrderWith(id, pays), noon().Add(time.Minute))
	}
	d.refund("REFUNDED", noon)
	d.put(dynamodb.Item{"orderId": dynamodb.Text("REGISTERED"), "sk": dynamodb.Text("intake"), "caller": dynamodb.Text("c")})
	d.steps(step{line: "cancel HELD --yes", want: "canceled"}, step{line: "cancel MEANWHILE --yes", want: "canceled"})
	back := []order.ID{"OLDER", "REFUNDED", "LOST", "REGISTERED", "MEANWHILE", "SAME"}
	damaged := d.damagedTable(append(back, "EDITED", "HELD")...)
	want := map[order.ID][]dynamodb.Item{}
	for _, id := range append(back, "EDITED", "HELD") {
		want[id] = d.of(id)
		d.remove(d.of(id)...)
		d.put(backup[id]...)
	}
	damaged.edit("EDITED", dynamodb.Item{"status": dynamodb.Text("declined")})
	lease := order.Lease{Owner: "w", From: noon(), Until: noon().Add(10 * time.Minute)}
	_, err := order.Begin(t.Context(), d.store, ordertest.Order("HELD"), lease, nil)
	must(t, err)
	changes := func() { // between the plan and the write
		var once sync.Once
		d.engine.Proxy.Before(func(c dynamodbtest.Call) {
			if c.Operation == "TransactWriteItems" && strings.Contains(string(c.Request), "MEANWHILE") {
				once.Do(func() { d.edit("MEANWHILE", dynamodb.Item{"updatedAt": dynamodb.Number(1)}) })
			}
		})
	}
	line := "restore --from-table " + damaged.table
	d.steps(
		step{line: "restore --from-table " + d.table, claim: "the same table", code: 1, want: "not ORDERS_TABLE itself"},
		step{line: "restore ORD-1 --from-table x", claim: "both", code: 80, want: "want either an orderId or --from-table"},
		step{line: line + " --status paid", claim: "some", typed: "no\n", code: 1, want: "2 paid\n2 orders to bring back, 0 to leave"},
		step{
			line: line, claim: "all", typed: "restore\n", code: 2, before: changes,
			want: "1 canceled\n2 paid\n1 partially_refunded\n1 registered\n5 orders to bring back, 2 to leave alone\n" +
				"brought back 4 of 5 orders\nleft alone: EDITED  edited in the damaged\n" +
				"left alone: HELD  a worker holds it\nleft alone: MEANWHILE  it changed meanwhile",
		},
	)
	for _, id := range []order.ID{"OLDER", "REFUNDED", "LOST", "REGISTERED", "SAME"} {
		if got := d.of(id); !reflect.DeepEqual(got, want[id]) {
			t.Errorf("%s: got %v, want it as in the damaged table: %v", id, got, want[id])
		}
	}
	d.steps(step{line: "--json " + line + " --yes", claim: "again", code: 2, want: `"broughtBack":1,"leftAlone":{"EDITED"`})
}

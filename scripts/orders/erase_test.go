package main

import (
	"reflect"
	"testing"
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/orders/cloud"
)

// Whatever comes later, the end of an attempt, a redelivery, a refund or an audit, finds
// the orders as before, and nothing brings the name back.
func TestErase(t *testing.T) {
	t.Parallel()
	d := newAuditFixture(t)
	of := func(id order.ID, customer, method string) order.Order {
		draft := ordertest.Draft(id)
		draft.CustomerID, draft.Payment.Method = customer, method
		o, err := order.New(draft)
		must(t, err)
		return o
	}
	paid, refused := of("ORD-1001", "CUST-7", pays), of("ORD-1002", "CUST-7", missing)
	other, held := of("ORD-1003", "CUST-70", pays), of("ORD-1004", "CUST-7", pays)
	all := []order.Order{paid, refused, other, held}
	for _, o := range all[:3] {
		d.deliver(o, noon())
	}
	lease := order.Lease{Owner: "owner", From: noon(), Until: noon().Add(time.Minute)}
	claim, err := order.Begin(t.Context(), d.store, held, lease, nil)
	must(t, err)
	d.put(dynamodb.Item{
		"orderId": dynamodb.Text("ORD-1003"), "sk": dynamodb.Text("intake"), "caller": dynamodb.Text("00ff"),
		"amount": dynamodb.Number(3998), "currency": dynamodb.Text("usd"),
	})
	items := func(renamed map[string]string) (found []dynamodb.Item) {
		for _, o := range all {
			found = append(found, d.of(o.ID())...)
		}
		for _, item := range found {
			for _, name := range []string{"customerId", "caller"} {
				if to := renamed[dynamodb.TextOf(item, name)]; to != "" {
					item[name] = dynamodb.Text(to)
				}
			}
		}
		return found
	}
	want := items(map[string]string{"CUST-7": "erased", "00ff": "erased"})
	const asks = "Type this id to erase it from these rows for ever: "
	d.steps(
		step{line: "erase CUST-7", code: 1, want: "this needs a scan of table\nread request units: add --scan"},
		step{line: "erase --scan", code: 80, want: "want a customerId, or --order"},
		step{line: "erase --order ORD-1002", want: "customerId  CUST-7"},
		step{line: "erase --order CUST-7", code: 1, want: "It may be:"},
		step{line: "erase erased --scan", code: 1, want: "in place of an id that was erased"},
		step{line: "erase CUST-7 --scan", typed: "ORD-1001\n", code: 1, want: "rows of CUST-7: 3\n" + asks + "\nnothing was changed"},
		step{line: "erase CUST-7 --scan", typed: "CUST-7\n", want: "rows of CUST-7: 3\n" + asks +
			"\nrows erased: 3\norders dead-letters discard --field customerId=CUST-7\nbackups\nStripe\n--caller"},
		step{
			line: "erase ORD-1001 --scan --yes", claim: "an order's id", code: 2,
			want: "rows of ORD-1001: 0\nno row has the customerId \"ORD-1001\"\nnot an order",
		},
		step{line: "erase --caller CUST-7 --scan", code: 2, want: "no row has the caller \"CUST-7\""},
		step{line: "erase --caller 00ff --scan --yes", want: "ORD-1003\nput by HTTP\n39.98 USD\nrows erased: 1"},
	)
	if got := items(nil); !reflect.DeepEqual(got, want) {
		t.Errorf("got items %+v, want %+v", got, want)
	}
	gone := dynamodb.Item{"orderId": dynamodb.Text("ORD-1005"), "sk": dynamodb.Text("order")} // since it was listed
	opened, err := cloud.Open(t.Context(), testShell(d.environ))
	must(t, err)
	must(t, erase{ID: "CUST-7"}.replace(t.Context(), opened, gone))
	if got := d.of("ORD-1005"); len(got) != 0 {
		t.Errorf("got an item %+v of an order that is gone", got)
	}
	must(t, claim.Release(t.Context(), d.store, order.ReasonOutOfTime, noon()))
	for range 2 {
		for _, o := range all { // its message comes again
			d.deliver(o, noon().Add(time.Hour))
		}
	}
	d.refund("ORD-1001", noon)
	d.steps(step{line: "refresh ORD-1001", want: "unchanged"})
	if printed, code, classes := d.audit(""); code != 0 || len(classes) > 0 {
		t.Errorf("audit: exit code %d, %v:\n%s", code, classes, printed)
	}
	for _, o := range all {
		r, err := d.store.Load(t.Context(), o.ID())
		must(t, err)
		if charges := d.charges()[string(o.ID())]; (charges == 1) != (o.ID() != refused.ID()) || charges > 1 {
			t.Errorf("%s is %s and was charged %d times", o.ID(), r.Status, charges)
		}
		if name := map[bool]string{true: "CUST-70", false: "erased"}[o.ID() == other.ID()]; r.CustomerID != name {
			t.Errorf("%s: got customer %q, want %q", o.ID(), r.CustomerID, name)
		}
	}
}

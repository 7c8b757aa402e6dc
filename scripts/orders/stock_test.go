package main

import (
	"strings"
	"sync"
	"testing"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// trackStock makes the deployment track stock, with so many units of each SKU of an
// order. It returns the table.
func (d *deployment) trackStock(units int64) (table string) {
	d.Helper()
	table = d.engine.OpenStock(d.T)
	d.store = d.store.WithStock(table)
	d.environ = append(d.environ, "STOCK_TABLE="+table, "REFUND_QUEUE_URL=https://sqs.example/1/refunds")
	for sku := range ordertest.Order("any").Quantities() {
		_, err := d.store.AddStock(d.Context(), sku, units)
		must(d.T, err)
	}
	return table
}

func TestStock(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.trackStock(0)
	d.steps(
		step{line: "stock VINYL", claim: "an unknown SKU", code: 1, want: "no SKU \"VINYL\" in table\n--new creates it"},
		step{line: "stock VINYL --add 8 --yes", claim: "a typo", code: 1, want: "no SKU \"VINYL\" in table\n--new creates it"},
		step{line: "stock VINYL --add 8 --new", claim: "another word", typed: "yes\n", code: 1, want: "available  0 -> 8\nnothing was changed"},
		step{
			line: "stock VINYL --add 8 --new", typed: "VINYL\n",
			want: "stock\nSKU        VINYL\navailable  0 -> 8\nSKU        VINYL\navailable  8\nreserved   0\nsold       0",
		},
		step{line: "stock VINYL --add 8 --new --yes", claim: "again", code: 1, want: "--new: SKU \"VINYL\" is in table"},
		step{line: "stock VINYL --add=-2 --yes", want: "available  8 -> 6\navailable  6"},
		step{line: "stock VINYL --add=-7 --yes", code: 1, want: order.ErrTooFewAvailable.Error()},
		step{line: "--json stock VINYL", want: `{"sku":"VINYL","available":6,"reserved":0,"sold":0}`},
		step{line: "list --scan --status out_of_stock", before: func() { d.process(pays, "SHORT") }, want: "SHORT \n  MUG"},
		step{line: "cancel SHORT --yes", code: 1, want: "it was never charged and holds no stock"},
		step{
			line: "refund SHORT --amount 100 --reason duplicate --yes", code: 1,
			want: "it was never charged and holds no stock",
		},
	)
}

// The operator's commands settle orders that hold stock, and refuse to without the table.
// The index has them, also a refused one.
func TestOrdersThatHoldStock(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.process(takes, "NONE")
	d.trackStock(3)
	for _, id := range []order.ID{"REFUSED", "UNBOUND"} {
		c, err := order.Begin(t.Context(), d.store, ordertest.Order(id), order.Lease{Owner: "w", From: noon(), Until: noon()},
			ordertest.Order(id).Quantities())
		must(t, err)
		refusal := order.Outcome{Status: order.Refused}
		if id == "REFUSED" {
			refusal.Intent = "pi_1"
			must(t, c.Bind(t.Context(), d.store, order.Intent{ID: "pi_1", Mode: order.TestMode}, noon()))
		}
		must(t, c.Finish(t.Context(), d.store, refusal, noon()))
	}
	d.process(takes, "PENDING")
	d.process(declines, "DECLINED")
	for _, line := range []string{"list --holding", "list --holding --scan"} {
		for _, id := range []string{"REFUSED ", "PENDING "} {
			d.steps(step{line: line, want: id, lacks: "UNBOUND \nNONE "})
		}
	}
	d.steps(
		step{
			line: "cancel DECLINED --yes", claim: "without the table", environ: "STOCK_TABLE=", code: 1,
			want: "holds      MUG 1, TSHIRT-M 1\nset STOCK_TABLE",
		},
		step{line: "stock MUG", want: "available  0\nreserved   3"},
		step{line: "cancel DECLINED --yes", want: "canceled: it was declined"},
		step{line: "stock MUG", want: "available  1\nreserved   2"},
	)
}

// Somebody edited a SKU's item, or deleted it.
func TestRecountStock(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	table := d.trackStock(9)
	d.process(pays, "SOLD")
	d.process(takes, "PENDING")
	d.process(asks, "ASKED")
	add := func(units int64) {
		_, err := d.store.AddStock(t.Context(), "MUG", units)
		must(t, err)
	}
	deleteItem := func() {
		rows{t, d.client, table}.remove(dynamodb.Item{"sku": dynamodb.Text("MUG")})
	}
	during := func(change func()) func() { // the scan
		return func() {
			var once sync.Once
			d.engine.Proxy.Before(func(c dynamodbtest.Call) {
				if c.Operation == "Scan" {
					once.Do(change)
					if !strings.Contains(string(c.Request), `"ConsistentRead":true`) {
						t.Error("the count may miss what orders have just reserved")
					}
				}
			})
		}
	}
	const stop = "stop processing, then run it again"
	d.steps(
		step{
			line: "stock MUG --recount 8 --yes", claim: "a wrong number", before: func() { add(-3) },
			want: "SKU        MUG\navailable  6\nreserved   2\nsold       1",
		},
		step{line: "stock MUG --recount 2 --yes", claim: "as many as orders hold", want: "available  0\nreserved   2"},
		step{line: "stock MUG --recount 8 --yes", want: "available  6"},
		step{line: "stock MUG --recount 1 --yes", claim: "fewer", code: 1, want: order.ErrTooFewAvailable.Error() + "\norders hold 2"},
		step{line: "stock MUG --recount 8 --yes", environ: "ORDERS_TABLE=", code: 1, want: "ORDERS_TABLE: want"},
		step{
			line: "stock MUG --recount 8 --yes", claim: "an order reserves a unit meanwhile", code: 1,
			before: during(func() { d.process(takes, "LATER") }), want: stop,
		},
		step{
			line: "stock MUG --recount 8 --yes", claim: "stock comes in meanwhile", code: 1,
			before: during(func() { add(10) }), want: stop,
		},
		step{
			line: "stock MUG --recount 8 --yes", claim: "the SKU is deleted meanwhile", code: 1,
			before: during(deleteItem), want: stop,
		},
		step{
			line: "stock MUG --recount 5 --new --yes", claim: "a deleted SKU", before: during(func() {}),
			want: "available  2\nreserved   3\nsold       0",
		},
	)
}

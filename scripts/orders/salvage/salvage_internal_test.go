package salvage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// items are those of an order by sort key.
type items map[string]dynamodb.Item

// row returns the items of an order that was updated a minute after noon for each of its
// events. Edits replace attributes of its row; nil removes one.
func row(status order.Status, events int, edits dynamodb.Item) items {
	o := ordertest.Order("ORD-1")
	item := dynamodb.Item{
		"amount": dynamodb.Number(o.Total().Amount), "currency": dynamodb.Text(o.Total().Currency),
		"fingerprint": dynamodb.Text(o.Fingerprint()), "status": dynamodb.Text(status), "intentId": dynamodb.Text("pi_1"),
		"attempt": dynamodb.Number(1), "seq": dynamodb.Number(events), "createdAt": dynamodb.Millis(noon()),
		"updatedAt": dynamodb.Millis(noon().Add(time.Duration(events) * time.Minute)),
	}
	all := items{}
	for n := range events {
		all[fmt.Sprintf("%s%d", dynamodb.EventRow, n+1)] = dynamodb.Item{
			"seq": dynamodb.Number(n + 1), "from": dynamodb.Text(order.Open), "to": dynamodb.Text(status), "at": dynamodb.Millis(noon()),
		}
	}
	for name, value := range edits {
		if item[name] = value; value == nil {
			delete(item, name)
		}
	}
	return all.with(dynamodb.OrderRow, item)
}

// with adds an item, and its key to every one.
func (all items) with(sk string, item dynamodb.Item) items {
	all[sk] = item
	for sk, item := range all {
		item["orderId"], item["sk"] = dynamodb.Text("ORD-1"), dynamodb.Text(sk)
	}
	return all
}

func TestDecide(t *testing.T) {
	t.Parallel()
	minute := dynamodb.Millis(noon().Add(time.Minute))
	edited := func(name string, value types.AttributeValue) items {
		return row(order.Open, 0, dynamodb.Item{name: value})
	}
	leased := func(until time.Duration) items {
		return row(order.Open, 0, dynamodb.Item{"owner": dynamodb.Text("w"), "leaseUntil": dynamodb.Millis(noon().Add(until))})
	}
	registered := func(caller string, due types.AttributeValue) items {
		item := dynamodb.Item{"caller": dynamodb.Text(caller)}
		if due != nil {
			item["dueAt"] = due
		}
		return items{}.with("intake", item)
	}
	paid, open := row(order.Paid, 1, nil), row(order.Open, 0, nil)
	for claim, test := range map[string]struct {
		damaged, restored items
		puts, why         string // the sort keys; how the reason begins
	}{
		"missing":  {damaged: paid, puts: "event#1 order"},
		"older":    {damaged: paid, restored: open, puts: "event#1 order"},
		"the same": {damaged: paid, restored: row(order.Paid, 1, nil)},
		"older without another event": {
			damaged: row(order.Paid, 1, dynamodb.Item{"updatedAt": dynamodb.Millis(noon().Add(time.Hour))}), restored: paid, puts: "order",
		},
		"newer here":           {damaged: open, restored: paid, why: "changed in the restored table since: open pi_1 there, paid pi_1 here"},
		"another attempt here": {damaged: paid, restored: edited("attempt", dynamodb.Number(2)), why: "changed in"},
		"created again here":   {damaged: paid, restored: edited("createdAt", minute), why: "changed in"},
		"begun again here": {
			damaged: paid, restored: row(order.Open, 0, dynamodb.Item{"intentId": nil, "createdAt": minute}), puts: "event#1 order",
		},
		"edited there": {
			damaged: row(order.Paid, 1, dynamodb.Item{"status": dynamodb.Text(order.Declined)}),
			why:     "edited in the damaged table: its row says declined after 1 events, event 1 says paid",
		},
		"edited, with the same times": {
			damaged: row(order.Paid, 1, dynamodb.Item{"intentId": dynamodb.Text("pi_2")}), restored: paid,
			why: "edited by hand: paid pi_2 there, paid pi_1 here, with the same times",
		},
		"corrupt there":                    {damaged: edited("fingerprint", nil), why: "corrupt in the damaged"},
		"corrupt here":                     {damaged: paid, restored: edited("seq", nil), why: "corrupt in the restored"},
		"leased here":                      {damaged: paid, restored: leased(time.Minute), why: "a worker holds it"},
		"leased here once":                 {damaged: paid, restored: leased(-time.Hour), puts: "event#1 order"},
		"a registration alone":             {damaged: registered("a", nil), puts: "intake"},
		"a registration missing":           {damaged: row(order.Paid, 1, nil).with("intake", dynamodb.Item{}), restored: paid, puts: "intake"},
		"a registration that is due later": {damaged: registered("a", nil), restored: registered("a", minute)},
		"another registration": {
			damaged: registered("a", nil), restored: registered("b", nil),
			why: "changed in the restored table since: its item intake differs",
		},
		"other content":       {damaged: paid, restored: edited("amount", dynamodb.Number(7)), why: "changed in"},
		"another intent here": {damaged: paid, restored: edited("intentId", dynamodb.Text("pi_2")), why: "changed in"},
		"a suspect here": {
			damaged: paid, restored: row(order.Open, 0, dynamodb.Item{"intentId": nil, "lostIntentId": dynamodb.Text("pi_2")}), why: "changed in",
		},
	} {
		f := decide("ORD-1", test.damaged, test.restored, noon())
		var puts []string
		for _, p := range f.puts {
			puts = append(puts, dynamodb.TextOf(p.Item, "sk"))
			free := *p.ConditionExpression == dynamodb.Absent
			if here := test.restored[dynamodb.TextOf(p.Item, "sk")]; free != (here == nil) {
				t.Errorf("%s: the condition is %q, and the restored table has %v", claim, *p.ConditionExpression, here)
			}
		}
		slices.Sort(puts)
		got, alone := strings.Join(puts, " "), test.why != ""
		if (f.Why != "") != alone || !strings.HasPrefix(f.Why, test.why) || !alone && got != test.puts {
			t.Errorf("%s: got %q and puts %q, want %q and %q", claim, f.Why, got, test.why, test.puts)
		}
	}
}

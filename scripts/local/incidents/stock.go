package incidents

import (
	"errors"
	"strings"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// soldOut has two records on vinyl: one is sold, and a customer who must authenticate
// holds the other one. Of another SKU, somebody deletes the item.
func soldOut() Runbook {
	return Runbook{
		Title: "10. A SKU is sold out, or its stock does not add up",
		Seen: `The shop shows VINYL as sold out, and 10 more have come in. The customer of ORD-9102 gave up;
that of ORD-9103, which was short, wants to order again. ORD-9104 is not wanted any more, but
nobody can cancel it. On the shelf are 5 POSTER.`,
		options: func(_ *Incident, o *system.Options) { o.Stock = map[string]int64{"VINYL": 2, "POSTER": 5} },
		happens: func(i *Incident) {
			i.post(of("VINYL", Sale("ORD-9101", 2400, Pays)))
			i.post(of("VINYL", Sale("ORD-9102", 2400, Asks)))
			i.post(of("VINYL", Sale("ORD-9103", 2400, Pays)), of("POSTER", Sale("ORD-9104", 2400, Asks)))
			i.remove(i.Stock, system.Item{"sku": dynamodb.Text("POSTER")})
		},
		events: []Event{
			{Name: "the customer orders again", happens: func(i *Incident) {
				stock, err := i.Store.Stock(i.ctx, "VINYL")
				if err == nil && stock.Available == 0 {
					err = errors.New("the shop still shows VINYL as sold out")
				}
				must(err)
				i.Options.Stock["VINYL"] += 10 // came in, as the audit must know
				i.post(of("VINYL", Sale("ORD-9105", 2400, Pays)))
			}},
		},
		leads: map[order.ID]order.Status{
			"ORD-9101": order.Paid, "ORD-9102": order.Canceled, "ORD-9103": order.OutOfStock,
			"ORD-9104": order.Canceled, "ORD-9105": order.Paid,
		},
	}
}

func of(sku, message string) string { return strings.ReplaceAll(message, "BOOK", sku) }

package incidents

import (
	"fmt"
	"strings"

	"orderonce/domain/order"
	"orderonce/scripts/invariants"
)

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

package incidents

import "orderonce/domain/order"

// badRelease deploys a release that reads no order in dollars.
func badRelease() Runbook {
	return Runbook{
		Title: "8. A bad release was deployed",
		happens: func(i *Incident) {
			bad, err := i.setup.BuildPatched(
				"domain/order/order.go", "check(ValidCurrency(d.Currency)", `check(d.Currency == "eur"`,
			)
			must(err)
			i.post(Sale("ORD-8001", 2400, Pays))
			must(i.Function.Replace(bad))
			i.post(Sale("ORD-8002", 2400, Pays), Sale("ORD-8003", 2400, Pays))
		},
		events: map[string]func(*Incident){"the last good version is live": func(i *Incident) {
			lastGood, err := i.setup.Build("order")
			must(err)
			must(i.Function.Replace(lastGood))
		}},
		leads: map[order.ID]order.Status{"ORD-8001": order.Paid, "ORD-8002": order.Paid, "ORD-8003": order.Paid},
	}
}

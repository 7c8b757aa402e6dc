package order_test

import (
	"context"
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// An order is delivered twice and charged once.
func ExampleProcessor_Process() {
	o, err := order.New(order.Draft{
		ID:         "ORD12345",
		CustomerID: "CUST987",
		Currency:   "usd",
		Lines:      []order.Line{{SKU: "TSHIRT-M", Quantity: 2, UnitAmount: 1999}},
		Payment:    order.Payment{Customer: "cus_pretend", Method: "pm_card_visa"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	bank := &ordertest.Bank{Scope: "example"}
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	p := order.Processor{
		Store:       new(ordertest.Memory),
		Payments:    bank,
		Scope:       bank.Scope,
		Now:         func() time.Time { return now },
		ConfirmTime: 10 * time.Second,
	}
	for _, owner := range []string{"first delivery", "second delivery"} {
		l := order.Lease{Owner: owner, From: now, Until: now.Add(time.Minute)}
		r := p.Process(context.Background(), o, now, l)
		fmt.Println(owner+":", r.Verdict, r.Reason, r.Status)
	}
	fmt.Println("charged:", bank.Charges(o.ID()))
	// Output:
	// first delivery: done settled paid
	// second delivery: done duplicate paid
	// charged: [39.98 USD]
}

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

// An intent that needs authentication is not declined, although its state is the same.
func ExampleOutcomeOf() {
	for _, code := range []string{"insufficient_funds", "authentication_required"} {
		o, settled := order.OutcomeOf(order.Intent{
			ID: "pi_1", State: order.NeedsMethod, Failure: order.Failure{Code: "card_declined", DeclineCode: code},
		})
		fmt.Println(o.Status, o.Failure, settled)
	}
	_, settled := order.OutcomeOf(order.Intent{ID: "pi_1", State: order.NeedsConfirmation})
	fmt.Println(settled)
	// Output:
	// declined insufficient_funds true
	// action_required authentication_required true
	// false
}

func ExampleMoney_String() {
	fmt.Println(order.Money{Amount: 1999, Currency: "usd"})
	fmt.Println(order.Money{Amount: 500, Currency: "jpy"})
	fmt.Println(order.Money{Amount: 5120, Currency: "kwd"})
	// Output:
	// 19.99 USD
	// 500 JPY
	// 5.120 KWD
}

// The problems list every invalid field, without personal or payment data.
func ExampleNew() {
	_, err := order.New(order.Draft{
		ID:         "ORD12345",
		CustomerID: "Jane Doe",
		Currency:   "USD",
		Lines:      []order.Line{{SKU: "TSHIRT-M", Quantity: 0, UnitAmount: 1999}},
		Payment:    order.Payment{Customer: "cus_pretend", Method: "4242424242424242"},
	})
	for _, p := range err.(*order.InvalidError).Problems { //nolint:errorlint,forcetypeassert // New documents the type
		fmt.Println(p)
	}
	// Output:
	// customerId: want 1 to 128 printable characters without blanks
	// currency "USD": want a lower-case three-letter code that Stripe charges in, such as "usd"
	// payment.method: want an id such as "pm_..." or "cus_...": lower-case letters, '_', then letters, digits or '_', at most 255
	// lines[0].quantity 0: want 1 to 1000000
}

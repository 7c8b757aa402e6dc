// Package incidents puts the local system into the situations of docs/guides/runbooks.md,
// lets happen what AWS, Stripe and people do meanwhile, and audits the end. It knows
// nothing of the steps on the way: those are the runbook's.
package incidents

import (
	"fmt"
	"net/url"
	"time"

	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// Payment methods of the Stripe double.
const (
	Pays     = "pm_card_visa"
	Declines = "pm_card_chargeDeclined"
	Takes    = "pm_usBankAccount_processing"
	Asks     = "pm_card_authenticationRequired"
	Missing  = "pm_card_missing"
)

// Sale returns the message of an order of one book that costs so many cents.
func Sale(id order.ID, cents int64, method string) string {
	return orders.Encode(order.Draft{
		ID: string(id), CustomerID: "CUST-1", Currency: "usd",
		Lines:   []order.Line{{SKU: "BOOK", Quantity: 1, UnitAmount: cents}},
		Payment: order.Payment{Customer: "cus_Example1", Method: method},
	})
}

// ChargeElsewhere creates an intent of an order as another program with the same key
// would, confirmed or not.
func ChargeElsewhere(
	m *stripetest.Machine, now time.Time, key string, id order.ID, scope string, cents int, confirm bool,
) (intent string, err error) {
	form := url.Values{
		"amount": {fmt.Sprint(cents)}, "currency": {"usd"}, "customer": {"cus_other"}, "payment_method": {Pays},
		"metadata[orderId]": {string(id)}, "metadata[scope]": {scope},
	}
	if confirm {
		form["confirm"], form["off_session"] = []string{"true"}, []string{"true"}
	}
	made := m.Do(now, stripetest.Request{Method: "POST", Path: "/v1/payment_intents", APIKey: key, Form: form})
	if made.Intent == nil {
		return "", fmt.Errorf("charge %s elsewhere: %+v", id, made.Error)
	}
	return made.Intent.ID, nil
}

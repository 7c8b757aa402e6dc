package order_test

import (
	"errors"
	"slices"
	"testing"

	"orderonce/domain/order"
)

func TestOutcomeOfEveryIntentState(t *testing.T) {
	var (
		none     order.Failure
		noFunds  = order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"}
		expired  = order.Failure{Code: "expired_card"}
		customer = order.Failure{Code: "authentication_required"}
		byBank   = order.Failure{Code: "card_declined", DeclineCode: "authentication_required"}
	)
	for _, c := range []struct {
		state   order.IntentState
		failure order.Failure
		status  order.Status // "" if the order is not settled
		code    string
	}{
		{order.Succeeded, none, order.Paid, ""},
		{order.Succeeded, noFunds, order.Paid, ""},
		{order.Succeeded, customer, order.Paid, ""},
		{order.Processing, none, order.Pending, ""},
		{order.Processing, noFunds, order.Pending, ""},
		{order.NeedsAction, none, order.ActionRequired, ""},
		{order.NeedsAction, customer, order.ActionRequired, "authentication_required"},
		{order.IntentCanceled, none, order.Canceled, ""},
		{order.IntentCanceled, noFunds, order.Canceled, "insufficient_funds"},
		{order.NeedsMethod, noFunds, order.Declined, "insufficient_funds"},
		{order.NeedsMethod, expired, order.Declined, "expired_card"},
		{order.NeedsMethod, customer, order.ActionRequired, "authentication_required"},
		{order.NeedsMethod, byBank, order.ActionRequired, "authentication_required"},
		{order.NeedsMethod, none, "", ""},
		{order.NeedsConfirmation, none, "", ""},
		{order.NeedsConfirmation, noFunds, "", ""},
		{"requires_capture", none, "", ""},
		{"", none, "", ""},
	} {
		got, settled := order.OutcomeOf(order.Intent{ID: "pi_1", State: c.state, Failure: c.failure})
		want := order.Outcome{Status: c.status, Intent: "pi_1", Failure: c.code}
		if c.status == "" {
			want = order.Outcome{}
		}
		if got != want || settled != (c.status != "") {
			t.Errorf("%s %+v: got %+v, settled %t, want %+v", c.state, c.failure, got, settled, want)
		}
		if settled && order.Open.Transition(got.Status) != nil {
			t.Errorf("%s: got %s, want a status that may follow open", c.state, got.Status)
		}
	}
}

// What the provider says later is recorded if the status may follow. A paid order that is
// not paid at the provider is reported, so that Settle refuses it.
func TestUnrecorded(t *testing.T) {
	card := order.Failure{Code: "card_declined"}
	for said, want := range map[order.Intent][]order.Status{ // the statuses of records that should show it
		{State: order.Succeeded}: {
			order.Open, order.Declined, order.Canceled, order.ActionRequired, order.Pending, order.Refused, order.OutOfStock,
		},
		{State: order.IntentCanceled}: {
			order.Open, order.Declined, order.ActionRequired, order.Pending, order.Refused,
			order.Paid, order.PartiallyRefunded, order.Refunded,
		},
		{State: order.NeedsMethod, Failure: card}: {
			order.Open, order.ActionRequired, order.Pending, order.Refused,
			order.Paid, order.PartiallyRefunded, order.Refunded,
		},
		{State: order.Processing}:        {order.Open, order.Refused, order.Paid, order.PartiallyRefunded, order.Refunded},
		{State: order.NeedsConfirmation}: nil,
		{State: order.NeedsMethod}:       nil,
	} {
		for _, now := range order.Statuses() {
			if _, found := order.Unrecorded(now, said); found != slices.Contains(want, now) {
				t.Errorf("%s, and %s at the provider: got it unrecorded: %t, want %t", now, said.State, found, !found)
			}
		}
	}
}

func TestVerifyComparesEachField(t *testing.T) {
	total := order.Money{Amount: 3998, Currency: "usd"}
	for name, change := range map[string]func(*order.Intent){
		"":                                 func(*order.Intent) {},
		"another order":                    func(i *order.Intent) { i.OrderID = "ORD-2" },
		"no order":                         func(i *order.Intent) { i.OrderID = "" },
		"an order id with the same prefix": func(i *order.Intent) { i.OrderID += "0" },
		"another scope":                    func(i *order.Intent) { i.Scope = "other" },
		"no scope":                         func(i *order.Intent) { i.Scope = "" },
		"a scope with the same prefix":     func(i *order.Intent) { i.Scope += "-2" },
		"another amount":                   func(i *order.Intent) { i.Total.Amount++ },
		"a hundredth of the amount":        func(i *order.Intent) { i.Total.Amount /= 100 },
		"another currency":                 func(i *order.Intent) { i.Total.Currency = "eur" },
		"a currency without decimals":      func(i *order.Intent) { i.Total.Currency = "jpy" },
	} {
		i := order.Intent{ID: "pi_1", OrderID: "ORD-1", Scope: "test", Total: total}
		change(&i)
		err := order.Verify(i, "test", "ORD-1", total)
		if _, mismatch := errors.AsType[*order.MismatchError](err); mismatch != (name != "") {
			t.Errorf("%s: got %v, want a MismatchError: %t", name, err, name != "")
		}
	}
}

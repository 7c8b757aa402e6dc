package payer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/payer"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

func withCustomer(customer string) stripe.Response {
	return rigtest.OK(strings.Replace(rigtest.Intent("succeeded"), `"customer":"cus_canary"`, `"customer":`+customer, 1))
}

func TestPayer(t *testing.T) {
	customer := withCustomer(`{"id":"cus_1","email":"a@example.invalid","preferred_locales":["de-AT","en"]}`)
	got, err := payer.New(rigtest.Responding(customer)).Payer(t.Context(), rigtest.IntentID)
	if err != nil || got.Address.Reveal() != "a@example.invalid" || !slices.Equal(got.Locales, []string{"de-AT", "en"}) {
		t.Errorf("got %q, %v, %v", got.Address.Reveal(), got.Locales, err)
	}
	for claim, tt := range map[string]struct {
		response stripe.Response
		kind     order.ErrorKind // "" is receipt.ErrNoAddress
		text     string
	}{
		"no address":                    {withCustomer(`{"id":"cus_1","email":null}`), "", ""},
		"a deleted customer":            {withCustomer(`{"id":"cus_1","deleted":true}`), "", ""},
		"no customer":                   {withCustomer(rigtest.Null), "", ""},
		"two recipients":                {withCustomer(`{"email":"a@example.invalid, canary@example.invalid"}`), "", ""},
		"an outage":                     {rigtest.Failure(503, rigtest.APIError), order.KindUnavailable, "503"},
		"a missing permission":          {rigtest.Failure(403, rigtest.InvalidRequest), order.KindMisconfigured, `"Customers: Read"`},
		"a customer that is only an id": {withCustomer(`"cus_canary"`), order.KindMisconfigured, "not expanded"},
		"no field customer":             {rigtest.OK(`{"id":"pi_3Pretend"}`), order.KindUnknown, "without the PaymentIntent's customer"},
		"another intent":                {rigtest.OK(`{"id":"pi_other","customer":null}`), order.KindUnknown, "another PaymentIntent"},
		"an address that is no text":    {withCustomer(`{"email":4242}`), order.KindUnknown, "without the PaymentIntent's customer"},
	} {
		_, err := payer.New(rigtest.Responding(tt.response)).Payer(t.Context(), rigtest.IntentID)
		if order.KindOf(err) != tt.kind || errors.Is(err, receipt.ErrNoAddress) != (tt.kind == "") ||
			!strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %s with %q", claim, err, tt.kind, tt.text)
		}
	}
}

package payer_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/stripe/payer"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// payerOf reads the payer from a response.
func payerOf(t *testing.T, r rigtest.Response) (receipt.Payer, error) {
	t.Helper()
	return payer.New(rigtest.Responding(t, r)).Payer(t.Context(), rigtest.IntentID)
}

// withCustomer is an intent with this customer.
func withCustomer(customer string) rigtest.Response {
	return rigtest.OK(strings.Replace(rigtest.Intent("succeeded", rigtest.Null), `"customer":"cus_canary"`, `"customer":`+customer, 1))
}

func TestPayer(t *testing.T) {
	t.Parallel()
	got, err := payerOf(t, withCustomer(`{"id":"cus_1","email":"a@example.invalid","preferred_locales":["de-AT","en"]}`))
	if err != nil || got.Address.Reveal() != "a@example.invalid" || !slices.Equal(got.Locales, []string{"de-AT", "en"}) {
		t.Errorf("got %q, %v, %v", got.Address.Reveal(), got.Locales, err)
	}
	for claim, customer := range map[string]string{
		"no address":         `{"id":"cus_1","email":null}`,
		"a deleted customer": `{"id":"cus_1","deleted":true}`,
		"no customer":        rigtest.Null,
		"two recipients":     `{"id":"cus_1","email":"a@example.invalid, canary@example.invalid"}`,
	} {
		if _, err := payerOf(t, withCustomer(customer)); !errors.Is(err, receipt.ErrNoAddress) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want ErrNoAddress without the address", claim, err)
		}
	}
}

func TestPayerErrors(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		response rigtest.Response
		kind     order.ErrorKind
		text     string
	}{
		"an outage":                     {rigtest.Failure(http.StatusServiceUnavailable, rigtest.APIError, ""), order.KindUnavailable, "503"},
		"too many requests":             {rigtest.Failure(http.StatusTooManyRequests, rigtest.InvalidRequest, ""), order.KindUnavailable, "429"},
		"a missing permission":          {rigtest.Failure(http.StatusForbidden, rigtest.InvalidRequest, ""), order.KindMisconfigured, `"Customers: Read"`},
		"a customer that is only an id": {withCustomer(`"cus_canary"`), order.KindMisconfigured, "not expanded"},
		"no field customer":             {rigtest.OK(`{"id":"pi_3Pretend"}`), order.KindUnknown, "without the PaymentIntent's customer"},
		"another intent":                {rigtest.OK(`{"id":"pi_other","customer":null}`), order.KindUnknown, "another PaymentIntent"},
		"an address that is no text":    {withCustomer(`{"email":4242}`), order.KindUnknown, "without the PaymentIntent's customer"},
	} {
		_, err := payerOf(t, tt.response)
		if order.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %s with %q", claim, err, tt.kind, tt.text)
		}
	}
}

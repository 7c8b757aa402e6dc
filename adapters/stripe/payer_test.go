package stripe_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// payerOf reads the payer from a response.
func payerOf(t *testing.T, r response) (receipt.Payer, error) {
	t.Helper()
	return stripe.New(stripe.Options{Key: testKey, Scope: scope, Transport: roundTripFunc(r.roundTrip)}).Payer(t.Context(), intentID)
}

// withCustomer is an intent with this customer.
func withCustomer(customer string) response {
	return ok(strings.Replace(intentJSON("succeeded", null), `"customer":"cus_canary"`, `"customer":`+customer, 1))
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
		"no customer":        null,
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
		response response
		kind     order.ErrorKind
		text     string
	}{
		"an outage":                     {failure(http.StatusServiceUnavailable, apiError, ""), order.KindUnavailable, "503"},
		"too many requests":             {failure(http.StatusTooManyRequests, invalidRequest, ""), order.KindUnavailable, "429"},
		"a missing permission":          {failure(http.StatusForbidden, invalidRequest, ""), order.KindMisconfigured, `"Customers: Read"`},
		"a customer that is only an id": {withCustomer(`"cus_canary"`), order.KindMisconfigured, "not expanded"},
		"no field customer":             {ok(`{"id":"pi_3Pretend"}`), order.KindUnknown, "without the PaymentIntent's customer"},
		"another intent":                {ok(`{"id":"pi_other","customer":null}`), order.KindUnknown, "another PaymentIntent"},
		"an address that is no text":    {withCustomer(`{"email":4242}`), order.KindUnknown, "without the PaymentIntent's customer"},
	} {
		_, err := payerOf(t, tt.response)
		if order.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %s with %q", claim, err, tt.kind, tt.text)
		}
	}
}

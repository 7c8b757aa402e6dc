package charge_test

import (
	"testing"

	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// TestTheDomainAndTheStripeDoubleHaveTheSameLimits compares two lists that were each
// written from the documentation, by preparing the largest amount of every currency.
func TestTheDomainAndTheStripeDoubleHaveTheSameLimits(t *testing.T) {
	t.Parallel()
	s := rigtest.NewStripe(t)
	p := charge.New(rigtest.Options(t, s.URL, nil))
	currencies := 0
	for i := range 26 * 26 * 26 {
		code := string([]byte{'a' + byte(i/676), 'a' + byte(i/26%26), 'a' + byte(i%26)})
		if !order.ValidCurrency(code) {
			continue
		}
		currencies++
		c := order.Currency(code)
		largest := c.Max() / c.Step() * c.Step()
		o := rigtest.NewOrder(t, "pm_card_visa", rigtest.Total(order.Money{Amount: largest, Currency: c}))
		got, err := p.Prepare(t.Context(), o, order.PrepareKey(rigtest.Scope, o.ID()))
		if want := (order.Money{Amount: largest, Currency: c}); err != nil || got.Total != want {
			t.Errorf("%s: got %v, %v, want an intent of %v", code, got.Total, err, want)
		}
		if err := (order.Money{Amount: largest + c.Step(), Currency: c}).Validate(); err == nil {
			t.Errorf("%s: the domain accepts %d", code, largest+c.Step())
		}
	}
	if got := s.Count(stripetest.Create); got != currencies || currencies < 135 {
		t.Errorf("got %d intents for %d currencies, want one each for at least 135", got, currencies)
	}
}

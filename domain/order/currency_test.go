package order_test

import (
	"slices"
	"strings"
	"testing"

	"orderonce/domain/order"
)

func TestCurrenciesAreListedOnceAndSorted(t *testing.T) {
	t.Parallel()
	list := strings.Fields(order.Currencies)
	if !slices.IsSorted(list) {
		t.Error("not sorted")
	}
	if got, want := len(slices.Compact(slices.Clone(list))), len(list); got != want {
		t.Errorf("%d currencies are listed twice", want-got)
	}
	var valid []string
	for i := range 26 * 26 * 26 {
		if s := string([]byte{'a' + byte(i/676), 'a' + byte(i/26%26), 'a' + byte(i%26)}); order.ValidCurrency(s) {
			valid = append(valid, s)
		}
	}
	if !slices.Equal(valid, list) {
		t.Errorf("ValidCurrency accepts %v, listed are %v", valid, list)
	}
	for _, s := range []string{"", "US", "USD", "usdd", " us", "us ", "d e", "   ", "xxx"} {
		if order.ValidCurrency(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestMoneyIsValidWithinItsLimitsAndSteps(t *testing.T) {
	t.Parallel()
	steps := map[order.Currency]int64{"isk": 100, "ugx": 100, "bhd": 10, "jod": 10, "kwd": 10, "omr": 10, "tnd": 10}
	for code := range strings.FieldsSeq(order.Currencies) {
		c := order.Currency(code)
		step := max(steps[c], 1)
		if got := c.Step(); got != step {
			t.Errorf("%s: got step %d, want %d", c, got, step)
		}
		for _, amount := range []int64{
			-1 << 63, -100, -1, 0, 1, 10, 99, 100, 101, 110, 1999, 99_999_900, 99_999_990, 99_999_999, 100_000_000, 1<<63 - 1,
		} {
			err := order.Money{Amount: amount, Currency: c}.Validate()
			if want := 1 <= amount && amount <= 99_999_999 && amount%step == 0; (err == nil) != want {
				t.Errorf("%d %s: got %v, want valid: %t", amount, c, err, want)
			}
		}
	}
	for _, c := range []order.Currency{"", "USD", "xxx"} {
		if err := (order.Money{Amount: 100, Currency: c}).Validate(); err == nil {
			t.Errorf("currency %q: want an error", c)
		}
	}
}

func TestMoneyIsWrittenAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]order.Money{
		"19.99 USD":     {1999, "usd"},
		"0.05 EUR":      {5, "eur"},
		"0.00 EUR":      {0, "eur"},
		"999999.99 GBP": {order.MaxTotal, "gbp"},
		"500 JPY":       {500, "jpy"},
		"5 KRW":         {5, "krw"},
		"5.120 KWD":     {5120, "kwd"},
		"0.010 TND":     {10, "tnd"},
		"100.00 ISK":    {10_000, "isk"},
		"1.00 UGX":      {100, "ugx"},
		"99999.990 BHD": {99_999_990, "bhd"},
		"99999999 XOF":  {order.MaxTotal, "xof"},
	} {
		if got := m.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

package order_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"orderonce/domain/order"
)

func TestCurrenciesAreListedOnceAndSorted(t *testing.T) {
	all := strings.Fields(order.Currencies)
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) || len(all) != 139 {
		t.Errorf("got %d currencies %v, want 139, each once and sorted", len(all), all)
	}
	for _, s := range []string{
		"", " ", "us", "USD", "Usd", "usdd", "usd ", " usd", "usd\n", " us", "us ", "d e", "   ", "usd eur", "xxx", "bgn", "hrk",
	} {
		if order.ValidCurrency(s) || (order.Money{Amount: 100, Currency: order.Currency(s)}).Validate() == nil {
			t.Errorf("%q: got a valid currency, want an invalid one", s)
		}
	}
}

// The page is docs.stripe.com/currencies (2026). Two decimals, multiples of 1 and eight
// digits unless one of its sections says otherwise.
func TestEveryCurrencyHasTheDocumentedDecimalsStepAndMaximum(t *testing.T) {
	const (
		zeroDecimal   = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf" // "Zero-decimal currencies", but for UGX
		threeDecimal  = "bhd jod kwd omr tnd"                                         // the last digit must be 0
		wholeHundreds = "isk ugx"                                                     // "Special cases": no fractions, sent in hundredths
	)
	maxima := map[string]int64{ // "Minimum and maximum charge amounts"
		"idr": 999_999_999_999, "lbp": 99_999_999_999, "cop": 9_999_999_999, "huf": 9_999_999_999, "jpy": 9_999_999_999,
		"inr": 999_999_999,
	}
	for code := range strings.FieldsSeq(order.Currencies) {
		c, decimals, step, maximum := order.Currency(code), 2, int64(1), int64(99_999_999)
		switch {
		case strings.Contains(zeroDecimal, code):
			decimals = 0
		case strings.Contains(threeDecimal, code):
			decimals, step = 3, 10
		case strings.Contains(wholeHundreds, code):
			step = 100
		}
		if documented, ok := maxima[code]; ok {
			maximum = documented
		}
		if c.Step() != step || c.Max() != maximum || maximum > order.MaxUnitAmount {
			t.Errorf("%s: got step %d and maximum %d, want %d and %d", c, c.Step(), c.Max(), step, maximum)
		}
		want := fmt.Sprintf("%.*f %s", decimals, 123000/math.Pow10(decimals), strings.ToUpper(code))
		if got := (order.Money{Amount: 123_000, Currency: c}).String(); got != want {
			t.Errorf("%s: got %q, want %q", c, got, want)
		}
		for amount, valid := range map[int64]bool{
			math.MinInt64: false, -step: false, 0: false, step: true, 1: step == 1, 10 * step: true, 10*step - 1: step == 1,
			maximum - maximum%step: true, maximum + step: false, math.MaxInt64: false,
		} {
			if err := (order.Money{Amount: amount, Currency: c}).Validate(); (err == nil) != valid {
				t.Errorf("%d %s: got %v, want valid: %t", amount, c, err, valid)
			}
		}
	}
}

func TestMoneyInWords(t *testing.T) {
	for want, m := range map[string]order.Money{
		"0.05 EUR": {5, "eur"}, "0.00 EUR": {0, "eur"}, "0.010 TND": {10, "tnd"}, "5 KRW": {5, "krw"},
	} {
		if got := m.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The sums of the largest lines are compared with math/big, which cannot overflow.
func TestNoOrderOverflows(t *testing.T) {
	units := []int64{0, 1, 99_999_999, 1 << 40, order.MaxUnitAmount - 1, order.MaxUnitAmount}
	for i := range 5 * len(units) * len(units) * 4 {
		code := []string{"usd", "inr", "jpy", "lbp", "idr"}[i%5]
		quantity := []int64{1, 2, 999_999, order.MaxQuantity}[i/5%4]
		first, unit := units[i/20%len(units)], units[i/20/len(units)]
		d := oneLine(code, 1, first)
		for range order.MaxLines - 1 {
			d.Lines = append(d.Lines, order.Line{SKU: "A", Quantity: quantity, UnitAmount: unit})
		}
		exact := new(big.Int).Mul(big.NewInt(99*quantity), big.NewInt(unit))
		exact.Add(exact, big.NewInt(first))
		possible := exact.Sign() > 0 && exact.Cmp(big.NewInt(order.Currency(code).Max())) <= 0
		o, err := order.New(d)
		if (err == nil) != possible || possible && o.Total().Amount != exact.Int64() {
			t.Errorf("%s, 1 x %d + 99 x %d x %d: got %v, %v, want %v, valid: %t",
				code, first, quantity, unit, o.Total(), err, exact, possible)
		}
	}
}

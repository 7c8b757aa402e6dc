package order_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
)

// presentment has the currencies of docs.stripe.com/currencies (2026), section
// "Supported presentment currencies", in lower case, with the three-decimal currencies
// that the page lists for accounts in the United Arab Emirates. XCG replaced ANG in 2025,
// and the page lists both. BGN is gone: Bulgaria has paid in EUR since 2026-01-01
// (docs.stripe.com/changelog/clover/2026-01-28/bulgaria-currency-mapping-bgn-to-eur).
const presentment = `
	aed afn all amd ang aoa ars aud awg azn bam bbd bdt bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf clp cny cop
	crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk jmd jod
	jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn
	nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl thb
	tjs tnd top try ttd twd tzs uah ugx usd uyu uzs vnd vuv wst xaf xcd xcg xof xpf yer zar zmw`

// Two decimals, multiples of 1 and eight digits unless one of these says otherwise.
const (
	// The section "Zero-decimal currencies", without UGX, which "Special cases" sends in
	// hundredths.
	zeroDecimal = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"
	// The section "Three-decimal currencies": the last digit must be 0.
	threeDecimal = "bhd jod kwd omr tnd"
	// The section "Special cases": no fractions, and still sent in hundredths.
	wholeHundreds = "isk ugx"
)

// maxima has the maxima of the section "Minimum and maximum charge amounts". See
// Currency.Max.
func maxima() map[string]int64 {
	return map[string]int64{
		"idr": 999_999_999_999, "lbp": 99_999_999_999, "cop": 9_999_999_999, "huf": 9_999_999_999, "jpy": 9_999_999_999,
		"inr": 999_999_999,
	}
}

func TestTheCurrenciesAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	var valid []string
	for i := range 26 * 26 * 26 {
		if s := string([]byte{'a' + byte(i/676), 'a' + byte(i/26%26), 'a' + byte(i%26)}); order.ValidCurrency(s) {
			valid = append(valid, s)
		}
	}
	if want := strings.Fields(presentment); !slices.Equal(valid, want) {
		t.Errorf("valid currencies (-want +got):\n%s", cmp.Diff(want, valid))
	}
	if list := strings.Fields(order.Currencies); !slices.Equal(valid, list) {
		t.Errorf("listed currencies, want each once, sorted (-want +got):\n%s", cmp.Diff(valid, list))
	}
	for _, s := range []string{
		"", " ", "us", "US", "USD", "Usd", "usdd", "usd ", " usd", "usd\n", " us", "us ", "d e", "   ", "usd eur", "aed afn all",
		"xxx", "bgn", "hrk",
	} {
		if order.ValidCurrency(s) {
			t.Errorf("%q: got a valid currency, want an invalid one", s)
		}
	}
}

func TestEveryCurrencyHasTheDocumentedDecimalsStepAndMaximum(t *testing.T) {
	t.Parallel()
	in := func(list, code string) bool { return slices.Contains(strings.Fields(list), code) }
	for code := range strings.FieldsSeq(presentment) {
		c := order.Currency(code)
		decimals, step, maximum := 2, int64(1), int64(99_999_999)
		switch {
		case in(zeroDecimal, code):
			decimals = 0
		case in(threeDecimal, code):
			decimals, step = 3, 10
		case in(wholeHundreds, code):
			step = 100
		}
		if documented, ok := maxima()[code]; ok {
			maximum = documented
		}
		if got := c.Step(); got != step {
			t.Errorf("%s: got step %d, want %d", c, got, step)
		}
		if got := c.Max(); got != maximum {
			t.Errorf("%s: got maximum %d, want %d", c, got, maximum)
		}
		want := fmt.Sprintf("%.*f %s", decimals, 123000/math.Pow10(decimals), strings.ToUpper(code))
		if got := (order.Money{Amount: 123_000, Currency: c}).String(); got != want {
			t.Errorf("%s: got %q, want %q", c, got, want)
		}
	}
}

func TestMoneyIsValidWithinItsLimitsAndSteps(t *testing.T) {
	t.Parallel()
	for code := range strings.FieldsSeq(presentment) {
		c := order.Currency(code)
		for _, amount := range []int64{
			math.MinInt64, -100, -1, 0, 1, 10, 99, 100, 101, 110, 1999, 99_999_900, 99_999_990, 99_999_999, 100_000_000,
			999_999_999, 1_000_000_000, 9_999_999_999, 10_000_000_000, 99_999_999_999, 100_000_000_000, 999_999_999_999,
			1_000_000_000_000, math.MaxInt64,
		} {
			err := order.Money{Amount: amount, Currency: c}.Validate()
			if want := 1 <= amount && amount <= c.Max() && amount%c.Step() == 0; (err == nil) != want {
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

func TestAnInvalidAmountIsRejectedWithTheLimitOfItsCurrency(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]order.Money{
		"amount 100000000: want 1 to 99999999 in usd":         {Amount: 100_000_000, Currency: "usd"},
		"amount 1000000000000: want 1 to 999999999999 in idr": {Amount: 1_000_000_000_000, Currency: "idr"},
		"amount 0: want 1 to 999999999 in inr":                {Amount: 0, Currency: "inr"},
		"amount 150: want a multiple of 100 in isk":           {Amount: 150, Currency: "isk"},
	} {
		if got := fmt.Sprint(m.Validate()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The sums of the largest lines are compared with math/big, which cannot overflow.
func TestNoOrderOverflows(t *testing.T) {
	t.Parallel()
	units := []int64{0, 1, 99_999_999, 1 << 40, order.MaxUnitAmount - 1, order.MaxUnitAmount}
	quantities := []int64{1, 2, 999_999, order.MaxQuantity}
	for _, code := range []string{"usd", "inr", "jpy", "lbp", "idr"} {
		for _, first := range units {
			for _, unit := range units {
				for _, quantity := range quantities {
					d := oneLine(code, 1, first)
					for range order.MaxLines - 1 {
						d.Lines = append(d.Lines, order.Line{SKU: "A", Quantity: quantity, UnitAmount: unit})
					}
					exact := new(big.Int)
					for _, l := range d.Lines {
						exact.Add(exact, new(big.Int).Mul(big.NewInt(l.Quantity), big.NewInt(l.UnitAmount)))
					}
					possible := exact.Sign() > 0 && exact.Cmp(big.NewInt(order.Currency(code).Max())) <= 0
					o, err := order.New(d)
					if (err == nil) != possible || possible && o.Total().Amount != exact.Int64() {
						t.Errorf("%s, 1 x %d + 99 x %d x %d: got %v, %v, want %v, valid: %t",
							code, first, quantity, unit, o.Total(), err, exact, possible)
					}
				}
			}
		}
	}
	largest := int64(0)
	for code := range strings.FieldsSeq(presentment) {
		largest = max(largest, order.Currency(code).Max())
	}
	if largest != order.MaxUnitAmount {
		t.Errorf("got MaxUnitAmount %d, want the largest of all currencies, %d", order.MaxUnitAmount, largest)
	}
}

func TestMoneyString(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]order.Money{
		"19.99 USD":         {1999, "usd"},
		"12.00 ISK":         {1200, "isk"},
		"12.00 UGX":         {1200, "ugx"},
		"1200 JPY":          {1200, "jpy"},
		"0.05 EUR":          {5, "eur"},
		"0.00 EUR":          {0, "eur"},
		"999999.99 GBP":     {99_999_999, "gbp"},
		"9999999999.99 IDR": {999_999_999_999, "idr"},
		"5 KRW":             {5, "krw"},
		"5.120 KWD":         {5120, "kwd"},
		"0.010 TND":         {10, "tnd"},
		"99999.990 BHD":     {99_999_990, "bhd"},
		"99999999 XOF":      {99_999_999, "xof"},
	} {
		if got := m.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

package order

import (
	"fmt"
	"strconv"
	"strings"
)

// Currency is a lower-case ISO 4217 code that the payment provider charges in, such as
// "usd".
type Currency string

// currencies lists the presentment currencies of docs.stripe.com/currencies, each between
// two blanks.
const currencies = " aed afn all amd ang aoa ars aud awg azn bam bbd bdt bhd bif bmd bnd bob brl bsd bwp byn bzd cad" +
	" cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf" +
	" idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur" +
	" mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek" +
	" sgd shp sle sos srd std szl thb tjs tnd top try ttd twd tzs uah ugx usd uyu uzs vnd vuv wst xaf xcd xcg xof xpf" +
	" yer zar zmw "

// CurrencyRule describes ValidCurrency, for error messages.
const CurrencyRule = "a lower-case three-letter code that Stripe charges in, such as \"usd\""

// ValidCurrency reports whether s is a presentment currency.
func ValidCurrency(s string) bool {
	return len(s) == 3 && strings.Contains(currencies, " "+s+" ")
}

// Step returns the number that every amount in c must be a multiple of.
//
// Amounts are not always in ISO 4217 minor units. ISK and UGX no longer have a minor
// unit, but amounts are still sent in hundredths, so they must end in 00. Currencies with
// three decimals are sent in thousandths that must end in 0, because card networks settle
// two decimals (docs.stripe.com/currencies, special cases and three-decimal currencies).
func (c Currency) Step() int64 {
	switch c {
	case "isk", "ugx":
		return 100
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 10
	}
	return 1
}

// Max returns the largest amount of one charge in c.
//
// An amount has at most eight digits (docs.stripe.com/api/payment_intents/object,
// amount), and more in the currencies that docs.stripe.com/currencies lists: twelve in
// IDR and nine in INR; with cards also eleven in LBP and ten in COP, HUF and JPY. The
// provider refuses what the payment method cannot take (amount_too_large).
func (c Currency) Max() int64 {
	switch c {
	case "idr":
		return MaxUnitAmount
	case "lbp":
		return 99_999_999_999
	case "cop", "huf", "jpy":
		return 9_999_999_999
	case "inr":
		return 999_999_999
	}
	return 99_999_999
}

// Decimals returns the number of digits after the decimal point.
func (c Currency) Decimals() int {
	switch c {
	case "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf":
		return 0
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 3
	}
	return 2
}

// Money is an amount in the provider's units of its currency, such as cents. It is never
// a float.
type Money struct {
	Amount   int64
	Currency Currency
}

// Validate returns an error unless m can be charged: the currency is known, the amount is
// from 1 to the currency's Max, and it is a multiple of the currency's Step.
func (m Money) Validate() error {
	switch c := m.Currency; {
	case !ValidCurrency(string(c)):
		return fmt.Errorf("currency %q: want %s", c, CurrencyRule)
	case m.Amount < 1 || m.Amount > c.Max() || m.Amount%c.Step() != 0:
		return fmt.Errorf("amount %d: want %s", m.Amount, c.amountRule())
	}
	return nil
}

func (c Currency) amountRule() string {
	rule := fmt.Sprintf("1 to %d in %s", c.Max(), c)
	if step := c.Step(); step > 1 {
		rule += fmt.Sprintf(", a multiple of %d", step)
	}
	return rule
}

// String returns the amount with its decimal point and currency: "19.99 USD", "500 JPY",
// "5.120 KWD".
func (m Money) String() string {
	digits := strconv.FormatInt(m.Amount, 10)
	if n := m.Currency.Decimals(); n > 0 {
		digits = fmt.Sprintf("%0*d", n+1, m.Amount)
		digits = digits[:len(digits)-n] + "." + digits[len(digits)-n:]
	}
	return digits + " " + strings.ToUpper(string(m.Currency))
}

// sum returns the total of the lines; fits is false if it is above limit. The addition
// cannot overflow: a partial sum is at most limit, which is at most MaxUnitAmount, and a
// valid line is at most MaxQuantity times MaxUnitAmount, so their sum is below 2^60.
func sum(lines []Line, limit int64) (total int64, fits bool) {
	for _, l := range lines {
		if total += l.Quantity * l.UnitAmount; total > limit {
			return 0, false
		}
	}
	return total, true
}

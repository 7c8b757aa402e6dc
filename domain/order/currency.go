package order

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Currency is a lower-case ISO 4217 code that the payment provider charges in, such as "usd".
type Currency string

// currencies are the presentment currencies of docs.stripe.com/currencies, each between two blanks.
const currencies = " aed afn all amd ang aoa ars aud awg azn bam bbd bdt bhd bif bmd bnd bob brl bsd bwp byn bzd cad" +
	" cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf" +
	" idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur" +
	" mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek" +
	" sgd shp sle sos srd std szl thb tjs tnd top try ttd twd tzs uah ugx usd uyu uzs vnd vuv wst xaf xcd xcg xof xpf" +
	" yer zar zmw "

// CurrencyRule says what ValidCurrency accepts.
const CurrencyRule = "a lower-case three-letter code that Stripe charges in, such as \"usd\""

// ValidCurrency reports whether s is a Currency.
func ValidCurrency(s string) bool {
	return len(s) == 3 && strings.Contains(currencies, " "+s+" ")
}

// Step is what every amount in c must be a multiple of.
//
// Stripe's amount is not always ISO 4217's minor unit: ISK and UGX have none any more but are still sent in
// hundredths, so they must end in 00; currencies with three decimals are sent in thousandths that must end in 0,
// because card networks settle two (docs.stripe.com/currencies, special cases and three-decimal currencies).
func (c Currency) Step() int64 {
	switch c {
	case "isk", "ugx":
		return 100
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 10
	}
	return 1
}

// Max is the largest amount of one charge in c.
//
// Stripe's amount has eight digits (docs.stripe.com/api/payment_intents/object, amount), and more in the currencies
// that docs.stripe.com/currencies names: twelve in IDR and nine in INR with every payment method; with cards also
// eleven in LBP and ten in COP, HUF and JPY. Since 2026 that page allows most cards twelve digits in any currency;
// the reference of the PaymentIntent does not. Stripe refuses what the payment method cannot take
// (amount_too_large).
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

// decimals is how many digits of an amount follow the decimal point.
func (c Currency) decimals() int {
	switch c {
	case "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf":
		return 0
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 3
	}
	return 2
}

// Money is an amount in the units that Stripe's amount has in that currency; never a float.
type Money struct {
	Amount   int64
	Currency Currency
}

// Validate reports whether m can be charged: a known currency, 1 to the currency's Max, a multiple of its Step.
func (m Money) Validate() error {
	switch c := m.Currency; {
	case !ValidCurrency(string(c)):
		return fmt.Errorf("currency %q: want %s", c, CurrencyRule)
	case m.Amount < 1 || m.Amount > c.Max():
		return fmt.Errorf("amount %d: want 1 to %d in %s", m.Amount, c.Max(), c)
	case m.Amount%c.Step() != 0:
		return fmt.Errorf("amount %d: want a multiple of %d in %s", m.Amount, c.Step(), c)
	}
	return nil
}

// String is m for people: "19.99 USD", "500 JPY", "5.120 KWD".
func (m Money) String() string {
	digits := strconv.FormatInt(m.Amount, 10)
	if n := m.Currency.decimals(); n > 0 {
		digits = fmt.Sprintf("%0*d", n+1, m.Amount)
		digits = digits[:len(digits)-n] + "." + digits[len(digits)-n:]
	}
	return digits + " " + strings.ToUpper(string(m.Currency))
}

// errOverflow is what sum returns when an order adds up to more than one charge can hold.
var errOverflow = errors.New("lines add up to more than one charge can hold")

// sum adds the lines up, to at most limit. It cannot overflow: a partial sum is at most limit, which is at most
// MaxUnitAmount, and a valid line at most MaxQuantity times MaxUnitAmount, so together they are below 2^60.
func sum(lines []Line, limit int64) (int64, error) {
	var total int64
	for _, l := range lines {
		if total += l.Quantity * l.UnitAmount; total > limit {
			return 0, errOverflow
		}
	}
	return total, nil
}

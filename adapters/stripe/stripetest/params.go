package stripetest

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// currencies are the presentment currencies of docs.stripe.com/currencies.
const currencies = " " +
	"aed afn all amd ang aoa ars aud awg azn bam bbd bdt bhd bif bmd bnd bob brl bsd bwp byn bzd cad " +
	"cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd " +
	"hkd hnl htg huf idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl " +
	"mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php " +
	"pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl thb tjs tnd top try " +
	"ttd twd tzs uah ugx usd uyu uzs vnd vuv wst xaf xcd xcg xof xpf yer zar zmw "

// maximum is the largest amount of a currency: docs.stripe.com/currencies, "Minimum and
// maximum charge amounts", for cards. Eight digits unless the currency is named there
// (docs.stripe.com/api/payment_intents/object, amount, has eight for all).
func maximum(currency string) int64 {
	return cmp.Or(map[string]int64{
		"idr": 999_999_999_999, "lbp": 99_999_999_999, "cop": 9_999_999_999, "huf": 9_999_999_999,
		"jpy": 9_999_999_999, "inr": 999_999_999,
	}[currency], 99_999_999)
}

// minimum is the smallest amount of a currency: docs.stripe.com/currencies, "Minimum
// charge amount by currency", for accounts that settle in it. The minimum of another
// currency is that of the settlement currency after the conversion, which is not modeled.
func minimum(currency string) int64 {
	return map[string]int64{
		"gbp": 30, "usd": 50, "ars": 50, "aud": 50, "brl": 50, "cad": 50, "chf": 50, "cop": 50, "eur": 50, "idr": 50,
		"ils": 50, "inr": 50, "jpy": 50, "krw": 50, "nzd": 50, "php": 50, "rub": 50, "sgd": 50, "zar": 50,
		"aed": 2_00, "myr": 2_00, "pln": 2_00, "ron": 2_00, "dkk": 2_50, "nok": 3_00, "sek": 3_00, "hkd": 4_00,
		"mxn": 10_00, "thb": 10_00, "czk": 15_00, "huf": 175_00,
	}[currency]
}

// whole reports whether an amount has no fraction that its currency does not have.
// docs.stripe.com/currencies: ISK and UGX are sent in hundredths that are whole units,
// amounts of three-decimal currencies are multiples of ten.
func whole(amount int64, currency string) bool {
	switch currency {
	case "isk", "ugx":
		return amount%100 == 0
	case "bhd", "jod", "kwd", "omr", "tnd":
		return amount%10 == 0
	}
	return true
}

func newIntent(form url.Values) *Intent {
	amount, _ := strconv.ParseInt(form.Get("amount"), 10, 64)
	return &Intent{
		Amount: amount, Currency: strings.ToLower(form.Get("currency")), Customer: form.Get("customer"),
		PaymentMethod: form.Get("payment_method"), Metadata: metadata(form),
	}
}

// checkCreate checks the parameters of docs.stripe.com/api/payment_intents/create.
func (m *Machine) checkCreate(c *call) *Response {
	const automatic = "automatic_payment_methods[enabled]"
	form, i, confirm := c.Form, newIntent(c.Form), c.Form.Get("confirm") == "true"
	for _, name := range []string{"amount", "currency"} {
		if form.Get(name) == "" {
			return invalid("parameter_missing", name, "Missing required param: %s.", name)
		}
	}
	switch {
	case form.Has("off_session") && !confirm:
		return invalid("", "off_session", "The parameter `off_session` needs `confirm` set to true.")
	case form.Has("automatic_payment_methods[allow_redirects]") && !form.Has(automatic):
		return invalid("parameter_missing", automatic, "Missing required param: %s.", automatic)
	}
	refused := first(
		checkAmount(form.Get("amount"), i), checkCurrency(i), m.checkParties(form, i), checkMetadata(i.Metadata),
		oneOf(form, "confirm", "true", "false"), oneOf(form, "capture_method", "automatic"),
		oneOf(form, automatic, "true"),
		oneOf(form, "automatic_payment_methods[allow_redirects]", "always", "never"),
	)
	switch {
	case refused != nil || !confirm:
		return refused
	case i.PaymentMethod == "":
		return invalid("payment_intent_unexpected_state", "payment_method", "Missing payment method.")
	}
	return offSession(form)
}

// checkConfirm checks the parameters of docs.stripe.com/api/payment_intents/confirm.
func (m *Machine) checkConfirm(c *call) *Response {
	return first(m.checkParties(c.Form, m.Intent(c.id)), offSession(c.Form))
}

// offSession refuses a payment on session, for which the customer is present.
func offSession(form url.Values) *Response {
	if form.Get("off_session") == "true" {
		return nil
	}
	return invalid("", "off_session", "Not modeled: this Stripe double confirms only with `off_session` true.")
}

func checkAmount(text string, i *Intent) *Response {
	_, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return invalid("parameter_invalid_integer", "amount", "Invalid integer: %s", text)
	case i.Amount < 1:
		return invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1.")
	}
	return nil
}

// checkCurrency checks the currency, and the amounts that are possible in it.
func checkCurrency(i *Intent) *Response {
	switch {
	case strings.ContainsRune(i.Currency, ' ') || !strings.Contains(currencies, " "+i.Currency+" "):
		return invalid("", "currency", "Invalid currency: %s.", i.Currency)
	case i.Amount > maximum(i.Currency):
		return invalid("amount_too_large", "amount", "Amount must be at most %d.", maximum(i.Currency))
	case !whole(i.Amount, i.Currency):
		return invalid("", "amount", "Amounts in this currency must end in 0 or 00.")
	case i.Amount < minimum(i.Currency):
		return invalid("amount_too_small", "amount", "Amount must be at least %d.", minimum(i.Currency))
	}
	return nil
}

// checkParties checks the ids in parameters, and refuses a deleted customer and a
// detached payment method. A missing id is a 400, whereas a missing one in a path is a
// 404. Whether Stripe checks this or the intent's status first is not documented. This
// comes first here, so that the error does not show the intent.
func (m *Machine) checkParties(form url.Values, i *Intent) *Response {
	customer, method := form.Get("customer"), cmp.Or(form.Get("payment_method"), i.PaymentMethod)
	name, isCustomer := strings.CutPrefix(customer, "cus_")
	_, isMethod := cardOf(method)
	switch {
	case customer != "" && (!isCustomer || !isWord(name)):
		return missing("customer", "customer", customer)
	case method != "" && !isMethod:
		return missing("payment_method", "PaymentMethod", method)
	case m.gone[i.Customer]:
		return missing("customer", "customer", i.Customer)
	case m.gone[method]: // a 400 without a code, as users report
		return invalid("", "", "The provided PaymentMethod was detached from a Customer. It may not be used again.")
	}
	return nil
}

// checkMetadata checks the limits of docs.stripe.com/api/metadata: "up to 50 keys, with
// key names up to 40 characters long and values up to 500 characters long".
func checkMetadata(metadata map[string]string) *Response {
	for name, value := range metadata {
		if len(metadata) > 50 || len(name) > 40 || len(value) > 500 {
			return invalid("", "metadata", "Metadata holds at most 50 keys of 40 characters with values of 500.")
		}
	}
	return nil
}

// metadata returns the entries of a form-encoded map such as metadata[orderId]=ORD1.
func metadata(form url.Values) map[string]string {
	entries := map[string]string{}
	for name, values := range form {
		if inner, ok := strings.CutPrefix(name, "metadata["); ok {
			entries[strings.TrimSuffix(inner, "]")] = values[0]
		}
	}
	return entries
}

func oneOf(form url.Values, name string, allowed ...string) *Response {
	if form.Has(name) && !slices.Contains(allowed, form.Get(name)) {
		return invalid("", name, "Invalid %s: must be one of %s here.", name, strings.Join(allowed, ", "))
	}
	return nil
}

func first(checks ...*Response) *Response {
	for _, check := range checks {
		if check != nil {
			return check
		}
	}
	return nil
}

// isWord reports whether s could be the rest of a Stripe id after its prefix.
func isWord(s string) bool {
	const word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	return s != "" && strings.Trim(s, word) == ""
}

package stripetest

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

type createParams struct {
	intent  Intent
	confirm bool
	confirmParams
}

type confirmParams struct {
	method        string
	offSession    bool
	errorOnAction bool
}

type listParams struct {
	account, customer, intent, after string
	limit                            int
	from, before                     int64 // Seconds since 1970; 0 means any time.
	charges                          bool  // Expand the latest charges.
}

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
	switch currency {
	case "idr":
		return 999_999_999_999
	case "lbp":
		return 99_999_999_999
	case "cop", "huf", "jpy":
		return 9_999_999_999
	case "inr":
		return 999_999_999
	}
	return 99_999_999
}

// minimum is the smallest amount of a currency: docs.stripe.com/currencies, "Minimum
// charge amount by currency", for accounts that settle in it. The minimum of another
// currency is that of the settlement currency after the conversion, which is not modeled.
func minimum(currency string) int64 {
	switch currency {
	case "gbp":
		return 30
	case "usd", "ars", "aud", "brl", "cad", "chf", "cop", "eur", "idr", "ils", "inr", "jpy", "krw", "nzd", "php",
		"rub", "sgd", "zar":
		return 50
	case "aed", "myr", "pln", "ron":
		return 2_00
	case "dkk":
		return 2_50
	case "nok", "sek":
		return 3_00
	case "hkd":
		return 4_00
	case "mxn", "thb":
		return 10_00
	case "czk":
		return 15_00
	case "huf":
		return 175_00
	}
	return 1
}

// validate checks the parameters and stores them in the call.
// docs.stripe.com/api/idempotent_requests: "if incoming parameters fail validation ... no
// idempotent result is saved because no API endpoint initiated execution".
func (m *Machine) validate(c *call) *Response {
	if c.endpoint == "" {
		response := notFound(c)
		return &response
	}
	if intent := m.Intent(c.intent); c.intent != "" && (intent == nil || intent.Account != c.account()) {
		if c.endpoint == CreateRefund {
			return missing("payment_intent", "payment_intent", c.intent)
		}
		return refusal(404, Error{
			Type: "invalid_request_error", Code: "resource_missing", Param: "intent",
			Message: fmt.Sprintf("No such payment_intent: '%s'", c.intent),
		})
	}
	if bad := unknownParameter(c.endpoint, c.Form); bad != nil {
		return bad
	}
	switch c.endpoint {
	case Create:
		return m.readCreate(c.Form, &c.create)
	case Confirm:
		return m.readConfirm(c.Form, m.Intent(c.intent), &c.confirm)
	case Search:
		return readSearch(c)
	case List:
		c.list.account = c.account()
		return m.readList(c)
	case ListDisputes:
		return m.readDisputes(c)
	case CreateRefund, ReadRefund, ListRefunds:
		return m.validateRefund(c)
	case Cancel:
		return oneOf(c.Form, "cancellation_reason", "duplicate", "fraudulent", "requested_by_customer", "abandoned")
	case Read:
		return m.readExpand(c)
	}
	return nil
}

// readExpand allows keys that may read charges to expand the latest charge, and its
// refunds, and those that may read customers to expand the customer
// (docs.stripe.com/expand), because "if you're expanding objects in the responses
// of your API requests, you must also request at least one corresponding permission for
// each API object you expand" (docs.stripe.com/stripe-apps/reference/permissions). The
// errors are as users report them (github.com/gitpod-io/gitpod/issues/13035,
// github.com/tylerjrichards/st-paywall/issues/36).
func (m *Machine) readExpand(c *call) *Response {
	expandable := []string{"latest_charge", "latest_charge.refunds", "customer"}
	if c.endpoint == List { // Expansions on list requests start with data.
		expandable = []string{"data.latest_charge"}
	}
	for name, properties := range c.Form {
		if strings.HasPrefix(name, "expand[") && !slices.Contains(expandable, properties[0]) {
			return invalid("", "", "This property cannot be expanded ("+properties[0]+").")
		}
	}
	if c.expands("customer") {
		return c.permit(m.rules.NoCustomers, "rak_customer_read")
	}
	if hasList(c.Form, "expand") {
		return c.permit(m.rules.NoCharges, "rak_charge_read")
	}
	return nil
}

// expands reports whether the request expands the property.
func (c *call) expands(property string) bool {
	for name, properties := range c.Form {
		if strings.HasPrefix(name, "expand[") && slices.Contains(properties, property) {
			return true
		}
	}
	return false
}

// permit refuses a restricted key that lacks a permission.
func (c *call) permit(lacks bool, permission string) *Response {
	if !lacks || !strings.HasPrefix(c.APIKey, "rk_") {
		return nil
	}
	return refusal(403, Error{
		Type: "invalid_request_error",
		Message: "The provided key 'rk_test_*****' does not have the required permissions for this endpoint on " +
			"account 'acct_pretend'. Having the '" + permission + "' permission would allow this request to continue.",
	})
}

// knownParameters lists the modeled parameters, with a trailing [ for maps and lists.
// Stripe has more. A parameter that is not modeled is refused, because it would silently
// do nothing.
func knownParameters(e Endpoint) []string {
	switch e {
	case Create:
		return []string{
			"amount", "currency", "customer", "payment_method", "capture_method", "confirm", "off_session",
			"return_url", "description", "error_on_requires_action", "automatic_payment_methods[enabled]",
			"automatic_payment_methods[allow_redirects]", "payment_method_types[", "metadata[",
		}
	case Confirm:
		return []string{"payment_method", "off_session", "return_url", "error_on_requires_action"}
	case Cancel:
		return []string{"cancellation_reason"}
	case List:
		return []string{"customer", "limit", "starting_after", "created[gte]", "created[lt]", "expand["}
	case Search:
		return []string{"query"}
	case ListDisputes, ListRefunds:
		return []string{"payment_intent", "limit", "starting_after"}
	case CreateRefund:
		return []string{"payment_intent", "amount", "reason", "metadata["}
	case ReadRefund:
	case Read:
		return []string{"expand["}
	}
	return nil
}

func unknownParameter(e Endpoint, form url.Values) *Response {
	known := knownParameters(e)
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if len(form[name]) != 1 && !strings.HasSuffix(name, "[]") {
			return invalid("parameter_invalid", name, "Duplicate parameter: "+name)
		}
		group := name
		if i := strings.IndexByte(name, '['); i > 0 && !slices.Contains(known, name) {
			group = name[:i+1]
		}
		if !slices.Contains(known, group) {
			return invalid("parameter_unknown", name, "Received unknown parameter: "+name)
		}
	}
	return nil
}

func (m *Machine) readCreate(form url.Values, p *createParams) *Response {
	for _, name := range []string{"amount", "currency"} {
		if form.Get(name) == "" {
			return invalid("parameter_missing", name, "Missing required param: "+name+".")
		}
	}
	p.confirm = form.Get("confirm") == "true"
	for _, name := range []string{"off_session", "return_url", "error_on_requires_action"} {
		if form.Has(name) && !p.confirm {
			return invalid("", name, fmt.Sprintf("The parameter `%s` needs `confirm` set to true.", name))
		}
	}
	i := &p.intent
	i.Currency = strings.ToLower(form.Get("currency"))
	i.Customer, i.PaymentMethod = form.Get("customer"), form.Get("payment_method")
	i.Description, i.CaptureMethod = form.Get("description"), "automatic"
	i.Automatic = !hasList(form, "payment_method_types")
	i.MayRedirect = i.Automatic && form.Get("automatic_payment_methods[allow_redirects]") != "never"
	i.Metadata = mapOf(form, "metadata[")
	checks := []*Response{
		readAmount(form.Get("amount"), i), checkAutomatic(form), m.partiesExist(form),
		m.partiesRemain(i.Customer, i.PaymentMethod), checkMetadata(i.Metadata),
		oneOf(form, "confirm", "true", "false"), oneOf(form, "capture_method", "automatic"),
		oneOf(form, "automatic_payment_methods[enabled]", "true"),
		oneOf(form, "automatic_payment_methods[allow_redirects]", "always", "never"),
	}
	if p.confirm {
		checks = append(checks, m.readConfirm(form, i, &p.confirmParams))
	}
	if p.confirm && i.PaymentMethod == "" {
		checks = append(checks, invalid("payment_intent_unexpected_state", "payment_method",
			"You cannot confirm this PaymentIntent because it's missing a payment method."))
	}
	return first(checks)
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

// readAmount checks amount and currency.
func readAmount(text string, i *Intent) *Response {
	amount, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return invalid("parameter_invalid_integer", "amount", "Invalid integer: "+text)
	case amount < 1:
		return invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1.")
	case strings.ContainsRune(i.Currency, ' ') || !strings.Contains(currencies, " "+i.Currency+" "):
		return invalid("", "currency", "Invalid currency: "+i.Currency+".")
	case amount > maximum(i.Currency):
		return invalid("amount_too_large", "amount",
			fmt.Sprintf("Amount must be no more than %d in %s's smallest unit.", maximum(i.Currency), i.Currency))
	case !whole(amount, i.Currency):
		return invalid("", "amount", "Amounts in this currency must end in 0 or 00.")
	case amount < minimum(i.Currency):
		return invalid("amount_too_small", "amount",
			fmt.Sprintf("Amount must be at least %d %s.", minimum(i.Currency), i.Currency))
	}
	i.Amount = amount
	return nil
}

// checkAutomatic checks automatic_payment_methods, whose field enabled is required
// (docs.stripe.com/api/payment_intents/create). Stripe refuses it together with
// payment_method_types, as users report.
func checkAutomatic(form url.Values) *Response {
	switch {
	case !hasList(form, "automatic_payment_methods"):
		return nil
	case hasList(form, "payment_method_types"):
		return invalid("", "automatic_payment_methods",
			"You may only specify one of these parameters: automatic_payment_methods, payment_method_types.")
	case !form.Has("automatic_payment_methods[enabled]"):
		return invalid("parameter_missing", "automatic_payment_methods[enabled]",
			"Missing required param: automatic_payment_methods[enabled].")
	}
	return nil
}

// readConfirm checks a confirmation. docs.stripe.com/api/payment_intents/confirm:
// return_url is needed unless no redirect can happen; changelog 2023-08-16:
// error_on_requires_action is not allowed with automatic payment methods.
func (m *Machine) readConfirm(form url.Values, intent *Intent, p *confirmParams) *Response {
	p.method, p.offSession = form.Get("payment_method"), form.Get("off_session") == "true"
	p.errorOnAction = form.Get("error_on_requires_action") == "true"
	switch {
	case p.errorOnAction && intent.Automatic:
		return invalid("", "error_on_requires_action",
			"You cannot use `error_on_requires_action` with `automatic_payment_methods`.")
	case intent.MayRedirect && !p.offSession && form.Get("return_url") == "":
		return invalid("", "return_url",
			"Some payment methods might redirect your customer, so you must provide a `return_url`.")
	}
	return first([]*Response{
		m.partiesExist(form), m.partiesRemain(intent.Customer, cmp.Or(p.method, intent.PaymentMethod)),
		oneOf(form, "off_session", "true", "false"),
		oneOf(form, "error_on_requires_action", "true", "false"),
	})
}

// partiesRemain refuses a deleted customer and a detached payment method. Whether Stripe
// checks this or the intent's status first is not documented. This comes first here, so
// that the error does not show the intent.
func (m *Machine) partiesRemain(customer, method string) *Response {
	switch {
	case m.gone[customer]:
		return missing("customer", "customer", customer)
	case m.gone[method]: // a 400 without a code, as users report
		return invalid("", "", "The provided PaymentMethod was previously used with a PaymentIntent without "+
			"Customer attachment, shared with a connected account without Customer attachment, or was detached "+
			"from a Customer. It may not be used again. To use a PaymentMethod multiple times, you must attach "+
			"it to a Customer first.")
	}
	return nil
}

// readList checks the parameters of docs.stripe.com/api/payment_intents/list. Of the
// limits of created, the two of a half-open interval are modeled.
func (m *Machine) readList(c *call) *Response {
	form, p := c.Form, &c.list
	p.customer, p.after, p.charges = form.Get("customer"), form.Get("starting_after"), hasList(form, "expand")
	if after := m.Intent(p.after); p.after != "" && (after == nil || after.Account != p.account) {
		return missing("starting_after", "payment_intent", p.after)
	}
	return first([]*Response{
		readSeconds(form, "created[gte]", &p.from), readSeconds(form, "created[lt]", &p.before), m.readExpand(c),
		readLimit(form, p),
	})
}

func readSeconds(form url.Values, name string, seconds *int64) *Response {
	if !form.Has(name) {
		return nil
	}
	var err error
	if *seconds, err = strconv.ParseInt(form.Get(name), 10, 64); err != nil || *seconds < 0 {
		return invalid("parameter_invalid_integer", name, "Invalid integer: "+form.Get(name))
	}
	return nil
}

// readLimit reads the size of a page (docs.stripe.com/api/pagination).
func readLimit(form url.Values, p *listParams) *Response {
	p.limit = 10
	if !form.Has("limit") {
		return nil
	}
	limit, err := strconv.Atoi(form.Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		return invalid("parameter_invalid_integer", "limit", "Limit must be between 1 and 100.")
	}
	p.limit = limit
	return nil
}

// partiesExist checks the ids in parameters. A missing one is a 400, whereas a missing
// one in a path is a 404.
func (m *Machine) partiesExist(form url.Values) *Response {
	customer, method := form.Get("customer"), form.Get("payment_method")
	if name, ok := strings.CutPrefix(customer, "cus_"); customer != "" && (!ok || !isWord(name)) {
		return missing("customer", "customer", customer)
	}
	if _, ok := m.cardOf(method); method != "" && !ok {
		return missing("payment_method", "PaymentMethod", method)
	}
	return nil
}

// checkMetadata checks the limits of docs.stripe.com/api/metadata: "up to 50 keys, with
// key names up to 40 characters long and values up to 500 characters long".
func checkMetadata(metadata map[string]string) *Response {
	for name, value := range metadata {
		if len(metadata) > 50 || len(name) > 40 || len(value) > 500 {
			return invalid("", "metadata",
				"Metadata holds at most 50 keys of 40 characters with values of 500 characters.")
		}
	}
	return nil
}

// mapOf returns the entries of a form-encoded map such as metadata[orderId]=ORD1.
func mapOf(form url.Values, prefix string) map[string]string {
	entries := map[string]string{}
	for name, values := range form {
		if inner, ok := strings.CutPrefix(name, prefix); ok {
			entries[strings.TrimSuffix(inner, "]")] = values[0]
		}
	}
	return entries
}

func hasList(form url.Values, name string) bool {
	for key := range form {
		if strings.HasPrefix(key, name+"[") {
			return true
		}
	}
	return false
}

func oneOf(form url.Values, name string, allowed ...string) *Response {
	if form.Has(name) && !slices.Contains(allowed, form.Get(name)) {
		return invalid("", name,
			fmt.Sprintf("Invalid %s: must be one of %s here.", name, strings.Join(allowed, ", ")))
	}
	return nil
}

func first(checks []*Response) *Response {
	for _, check := range checks {
		if check != nil {
			return check
		}
	}
	return nil
}

func invalid(code, param, message string) *Response {
	return refusal(400, Error{Type: "invalid_request_error", Code: code, Param: param, Message: message})
}

func missing(param, kind, id string) *Response {
	return invalid("resource_missing", param, fmt.Sprintf("No such %s: '%s'", kind, id))
}

package stripe

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

const (
	intentsPath = "/v1/payment_intents"
	searchPath  = intentsPath + "/search"

	metaOrder       = "orderId"
	metaScope       = "scope"
	metaFingerprint = "fingerprint"

	latestCharge = "latest_charge" // the field that expand[] asks for (docs.stripe.com/expand)
)

// Request is one request to Stripe's API before it becomes HTTP.
type Request struct {
	Method string     // GET or POST
	Path   string     // such as /v1/payment_intents/pi_1/confirm
	Params url.Values // the query of a GET, the form of a POST
	Key    string     // the idempotency key of a POST; "" for a GET
}

// call is a request, and what the interpretation of its response depends on.
type call struct {
	Request
	name   string            // starts every error of the call, such as "confirm intent pi_1"
	intent order.IntentID    // the intent that the path or a parameter names; "" if none is named
	refund refund.ProviderID // the refund that the path names; "" if it names none
	apiKey string            // no error may repeat it
}

// prepareCall is the request of Payments.Prepare.
//
// Every parameter follows from the order and the scope. If a release changes a parameter,
// it must also change order.PrepareKey: Stripe refuses different parameters under a known
// idempotency key.
func prepareCall(o order.Order, scope order.Scope, k order.Key) call {
	total, payment := o.Total(), o.Payment()
	return call{name: "prepare order " + string(o.ID()), Request: Request{
		Method: http.MethodPost, Path: intentsPath, Key: k.String(),
		Params: url.Values{
			"amount":         {strconv.FormatInt(total.Amount, 10)},
			"currency":       {string(total.Currency)},
			"customer":       {payment.Customer},
			"payment_method": {payment.Method},
			"capture_method": {"automatic"},
			// Only payment methods without a page of their own: no customer is there to
			// redirect.
			"automatic_payment_methods[enabled]":         {"true"},
			"automatic_payment_methods[allow_redirects]": {"never"},
			"metadata[" + metaOrder + "]":                {string(o.ID())},
			"metadata[" + metaScope + "]":                {string(scope)},
			"metadata[" + metaFingerprint + "]":          {string(o.Fingerprint())},
		},
	}}
}

// confirmCall is the request of Payments.Confirm. It names no payment method, so Stripe
// refuses to confirm a declined intent, which has none any more.
func confirmCall(id order.IntentID, k order.Key) call {
	return call{name: "confirm intent " + string(id), intent: id, Request: Request{
		Method: http.MethodPost, Path: intentsPath + "/" + string(id) + "/confirm", Key: k.String(),
		Params: url.Values{"off_session": {"true"}},
	}}
}

// cancelCall is the request of Payments.CancelIntent.
func cancelCall(id order.IntentID, k order.Key) call {
	return call{name: "cancel intent " + string(id), intent: id, Request: Request{
		Method: http.MethodPost, Path: intentsPath + "/" + string(id) + "/cancel", Key: k.String(),
	}}
}

// readCall is the request of Payments.Read.
func readCall(id order.IntentID) call {
	return call{name: "read intent " + string(id), intent: id, Request: Request{
		Method: http.MethodGet, Path: intentsPath + "/" + string(id),
	}}
}

// readChargeCall reads an intent with its latest charge expanded.
func readChargeCall(id order.IntentID) call {
	c := readCall(id)
	c.name += " with its latest charge"
	c.Params = url.Values{"expand[]": {latestCharge}}
	return c
}

// findCall is the request of Payments.Find.
func findCall(id order.ID, scope order.Scope) call {
	// Neither an order id nor a scope can contain a quote: order.ValidID, order.NewScope.
	query := "metadata['" + metaOrder + "']:'" + string(id) + "'" +
		" AND metadata['" + metaScope + "']:'" + string(scope) + "'"
	return call{name: "find intents of order " + string(id), Request: Request{
		Method: http.MethodGet, Path: searchPath, Params: url.Values{"query": {query}},
	}}
}

var (
	errNoKey = errors.New("no idempotency key: want one for every write")
	errNotID = errors.New("not the id of a PaymentIntent or refund")
)

// validate refuses a request that must not be sent. The intent's id becomes part of a
// path: "" would list every intent, and "pi_1/cancel" would cancel one.
//
// A read of an invalid id is Misconfigured and not Refused, because a corrupt row may be
// the cause, and its order may have been charged.
func (c call) validate() error {
	named := c.Path != intentsPath && c.Path != searchPath
	switch {
	case c.Method != http.MethodGet && c.Key == "":
		return c.fail(order.KindRefused, parsed{}, errNoKey)
	case !named || order.ValidReference(cmp.Or(string(c.intent), string(c.refund))):
		return nil
	case c.Method == http.MethodGet:
		return c.fail(order.KindMisconfigured, parsed{}, errNotID)
	}
	return c.fail(order.KindRefused, parsed{}, errNotID)
}

// permission is the permission that a restricted key needs for the call, as the Dashboard
// names it (docs.stripe.com/keys/restricted-api-keys). Write includes Read. An expanded
// object needs its own permission (docs.stripe.com/stripe-apps/reference/permissions).
func (c call) permission() string {
	switch {
	case isRefund(c.Path) && c.Method == http.MethodPost:
		return "Charges and Refunds: Write"
	case isRefund(c.Path), strings.Contains(c.Params.Get("expand[]"), latestCharge):
		return "Charges and Refunds: Read"
	case c.Path == disputesPath:
		return "Disputes: Read"
	case c.Params.Get("expand[]") == customerField:
		return "Customers: Read"
	case c.Method == http.MethodGet:
		return "PaymentIntents: Read"
	}
	return "PaymentIntents: Write"
}

// encode encodes parameters sorted by name. As in stripe-go, brackets are not escaped.
func encode(params url.Values) string {
	return strings.NewReplacer("%5B", "[", "%5D", "]").Replace(params.Encode())
}

package stripetest

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	get          = "GET"
	post         = "POST"
	root         = "/v1/payment_intents"
	refundsRoot  = "/v1/refunds"
	disputesRoot = "/v1/disputes"
)

// Request is what a client sends.
type Request struct {
	Method string     // GET or POST.
	Path   string     // Such as /v1/payment_intents/pi_000001/confirm.
	APIKey string     // From the Authorization header, without its scheme.
	Key    string     // Idempotency-Key, or empty.
	Form   url.Values // The form of a POST, the query of a GET. It must not be changed afterwards.
	Number int        // Call.Number, for faults of this request alone; 0 if there are none.
}

// Endpoint is an operation of Stripe's API.
type Endpoint string

// The modeled endpoints.
const (
	Create  Endpoint = "create"
	Confirm Endpoint = "confirm"
	Cancel  Endpoint = "cancel"
	Read    Endpoint = "read"
	List    Endpoint = "list"
	Search  Endpoint = "search"

	ListDisputes Endpoint = "list_disputes"
	CreateRefund Endpoint = "create_refund"
	ReadRefund   Endpoint = "read_refund"
	ListRefunds  Endpoint = "list_refunds"
)

// operation is how the machine handles an endpoint.
type operation struct {
	endpoint     Endpoint
	method, path string // The path has {id} where an id is.
	// parameters are the modeled ones, with a trailing [ for maps and lists. Stripe has
	// more. A parameter that is not modeled is refused, because it would silently do
	// nothing.
	parameters []string
	expandable []string
	// check refuses a write whose parameters are invalid. Nothing is stored under its key
	// then. docs.stripe.com/api/idempotent_requests: "if incoming parameters fail
	// validation ... no idempotent result is saved because no API endpoint initiated
	// execution".
	check func(*Machine, *call) *Response
	run   func(*Machine, time.Time, *call) Response
}

func operations() []operation {
	return []operation{
		{
			endpoint: Create, method: post, path: root, check: (*Machine).checkCreate, run: (*Machine).createIntent,
			parameters: []string{
				"amount", "currency", "customer", "payment_method", "capture_method", "confirm", "off_session",
				"description", "automatic_payment_methods[enabled]", "automatic_payment_methods[allow_redirects]",
				"metadata[",
			},
		},
		{
			endpoint: Confirm, method: post, path: root + "/{id}/confirm", check: (*Machine).checkConfirm,
			run: (*Machine).confirmIntent, parameters: []string{"payment_method", "off_session"},
		},
		{
			endpoint: Cancel, method: post, path: root + "/{id}/cancel", run: (*Machine).cancelIntent,
		},
		{
			endpoint: Search, method: get, path: root + "/search", run: (*Machine).search,
			parameters: []string{"query"},
		},
		{
			endpoint: Read, method: get, path: root + "/{id}", run: (*Machine).readIntent,
			expandable: []string{"latest_charge", "latest_charge.refunds", "customer"},
		},
		{
			endpoint: List, method: get, path: root, run: (*Machine).listIntents,
			parameters: []string{"customer", "limit", "starting_after", "created[gte]", "created[lt]"},
			expandable: []string{"data.latest_charge"}, // Expansions on list requests start with data.
		},
		{
			endpoint: ListDisputes, method: get, path: disputesRoot, run: (*Machine).listDisputes,
			parameters: []string{"payment_intent", "limit", "starting_after", "created[gte]", "created[lt]"},
			expandable: []string{"data.payment_intent"},
		},
		{
			endpoint: CreateRefund, method: post, path: refundsRoot, check: (*Machine).checkRefund,
			run:        (*Machine).createRefund,
			parameters: []string{"payment_intent", "amount", "reason", "metadata["},
		},
		{
			endpoint: ListRefunds, method: get, path: refundsRoot, run: (*Machine).listRefunds,
			parameters: []string{"payment_intent", "limit", "starting_after", "created[gte]", "created[lt]"},
			expandable: []string{"data.payment_intent", "data.payment_intent.latest_charge"},
		},
		{
			endpoint: ReadRefund, method: get, path: refundsRoot + "/{id}", run: (*Machine).readRefund,
		},
	}
}

func (o operation) match(r Request) (id string, ok bool) {
	before, after, hasID := strings.Cut(o.path, "{id}")
	id, prefixed := strings.CutPrefix(r.Path, before)
	id, suffixed := strings.CutSuffix(id, after)
	return id, r.Method == o.method && prefixed && suffixed && hasID == (id != "") && !strings.Contains(id, "/")
}

// route finds the operation, the intent and the order of a request, before its
// validation.
func (m *Machine) route(now time.Time, r Request) *call {
	c := &call{Request: r, number: m.requests, begun: now, orderID: r.Form.Get("metadata[orderId]")}
	for _, o := range operations() {
		if id, ok := o.match(r); ok {
			c.op, c.id = o, id
			break
		}
	}
	if c.op.endpoint == CreateRefund {
		c.id = r.Form.Get("payment_intent")
	}
	for _, id := range []string{c.id, r.Form.Get("payment_intent")} {
		if intent := m.Intent(id); intent != nil {
			c.orderID = intent.OrderID()
		}
	}
	if c.op.endpoint == ReadRefund {
		if refund := find(m.refunds, c.id); refund != nil {
			c.orderID = refund.Metadata["orderId"]
		}
	}
	return c
}

// authenticate accepts test keys only. docs.stripe.com/error-low-level: a 401 is not
// stored under the idempotency key.
func (m *Machine) authenticate(c *call) *Response {
	isKey := func(mode string) bool {
		return strings.HasPrefix(c.APIKey, "sk_"+mode) || strings.HasPrefix(c.APIKey, "rk_"+mode)
	}
	switch {
	case isKey("live_"):
		return refuse(401, "", "", "LIVE KEY REFUSED: a live API key was sent to a Stripe double; "+
			"treat that key as exposed and roll it.")
	case m.rules.Key != "" && c.APIKey != m.rules.Key, !isKey("test_"):
		return refuse(401, "", "", "Invalid API Key provided.")
	}
	return nil
}

// validate checks the URL and the parameters. Permissions of restricted keys are not
// modeled.
func (m *Machine) validate(c *call) *Response {
	if c.op.endpoint == "" {
		return refuse(404, "", "", "Unrecognized request URL, or not modeled: %s %s", c.Method, c.Path)
	}
	if strings.Contains(c.op.path, root+"/{id}") && m.Intent(c.id) == nil {
		return refuse(404, "resource_missing", "intent", "No such payment_intent: '%s'", c.id)
	}
	checks := []*Response{unknownParameter(c), checkExpand(c)}
	if c.op.check != nil {
		checks = append(checks, c.op.check(m, c))
	}
	return first(checks...)
}

func unknownParameter(c *call) *Response {
	for _, name := range slices.Sorted(maps.Keys(c.Form)) {
		if len(c.Form[name]) != 1 && !strings.HasSuffix(name, "[]") {
			return invalid("parameter_invalid", name, "Duplicate parameter: %s", name)
		}
		group := name
		if i := strings.IndexByte(name, '['); i > 0 && !slices.Contains(c.op.parameters, name) {
			group = name[:i+1]
		}
		if !slices.Contains(c.op.parameters, group) && (group != "expand[" || c.op.expandable == nil) {
			return invalid("parameter_unknown", name, "Received unknown parameter: %s", name)
		}
	}
	return nil
}

func checkExpand(c *call) *Response {
	for _, property := range c.expansions() {
		if !slices.Contains(c.op.expandable, property) {
			return invalid("", "", "This property cannot be expanded (%s).", property)
		}
	}
	return nil
}

func (c *call) expansions() (properties []string) {
	for name, values := range c.Form {
		if strings.HasPrefix(name, "expand[") {
			properties = append(properties, values...)
		}
	}
	return properties
}

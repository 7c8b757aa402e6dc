package stripetest

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	get  = "GET"
	post = "POST"
	root = "/v1/payment_intents"
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

// RequestID is the number of a request. Its string is the Request-Id header.
type RequestID int

// String returns the Request-Id header, such as req_000001.
func (id RequestID) String() string { return fmt.Sprintf("req_%06d", int(id)) }

// Response is a response of the Stripe double. The intents in it are shared with the
// machine and read-only.
type Response struct {
	Status      int
	At          time.Time // The Date header.
	RequestID   RequestID
	Original    RequestID // The request whose stored response this replays; 0 if this is not a replay.
	ShouldRetry string    // The Stripe-Should-Retry header: true, false, or empty for no header.
	Lost        bool      // The connection breaks before the response arrives.
	Garbled     bool      // Only half of the body arrives.
	Intent      *Intent
	Customer    *Customer // The intent's customer if the request expands it; nil if there is none.
	Charge      *Charge   // The intent's latest charge if the request expands it; nil if there is none.
	List        *Page
	Disputes    *Objects[*Dispute]
	Refund      *Refund
	Refunds     *Objects[*Refund] // Of Charge if the request expands them.
	Error       *Error
}

// Replayed reports whether the response is the one stored under the key (header
// Idempotent-Replayed).
func (r Response) Replayed() bool { return r.Original != 0 }

// result returns the Call.Result of the response.
func (r Response) result() string {
	switch {
	case r.Error != nil:
		return cmp.Or(r.Error.Code, r.Error.Type)
	case r.Intent != nil:
		return string(r.Intent.Status)
	case r.Refund != nil:
		return string(r.Refund.Status)
	}
	return ""
}

// Error is the inside of Stripe's error body, and of an intent's last_payment_error.
type Error struct {
	Type, Code, DeclineCode, Message, Param string
	PaymentMethod                           string  // The declined payment method.
	Intent                                  *Intent // The intent after the error.
}

// Page is one page of the list or of a search, newest first.
type Page struct {
	Intents []*Intent
	Charges []*Charge // The latest charge of each intent, or nil, if the request expands it.
	More    bool
	Search  bool
}

// route finds the endpoint, the intent and the order of a request, before its validation.
func (m *Machine) route(r Request) *call {
	c := &call{Request: r, number: m.requests}
	rest, below := strings.CutPrefix(r.Path, root+"/")
	id, verb, _ := strings.Cut(rest, "/")
	switch {
	case r.Method == post && r.Path == root:
		c.endpoint, c.orderID = Create, r.Form.Get("metadata[orderId]")
	case r.Method == get && r.Path == root:
		c.endpoint = List
	case r.Method == get && r.Path == disputesRoot:
		c.endpoint = ListDisputes
		if intent := m.Intent(r.Form.Get("payment_intent")); intent != nil {
			c.orderID = intent.OrderID()
		}
	case r.Path == refundsRoot || strings.HasPrefix(r.Path, refundsRoot+"/"):
		m.routeRefund(c)
	case !below:
	case r.Method == get && verb == "" && id == "search":
		c.endpoint = Search
	case r.Method == get && verb == "":
		c.endpoint, c.intent = Read, id
	case r.Method == post && verb == "confirm":
		c.endpoint, c.intent = Confirm, id
	case r.Method == post && verb == "cancel":
		c.endpoint, c.intent = Cancel, id
	}
	if intent := m.Intent(c.intent); intent != nil {
		c.orderID = intent.OrderID()
	}
	return c
}

// account is the account of a call, which owns intents and idempotency keys: the part of
// the API key after its prefix, so that a secret and a restricted key can belong to one
// account. This is not a rule of Stripe's, whose keys do not show the account.
func (c *call) account() string {
	return strings.TrimPrefix(strings.TrimPrefix(c.APIKey, "sk_test_"), "rk_test_")
}

// authenticate accepts test keys only. docs.stripe.com/error-low-level: a 401 is not
// stored under the idempotency key.
func (m *Machine) authenticate(c *call) *Response {
	switch {
	case c.APIKey == "":
		return refusal(401, Error{Type: "invalid_request_error", Message: "You did not provide an API key."})
	case strings.HasPrefix(c.APIKey, "sk_live_"), strings.HasPrefix(c.APIKey, "rk_live_"):
		return refusal(401, Error{
			Type: "invalid_request_error",
			Message: "LIVE KEY REFUSED: this is a Stripe double for tests. A live API key was sent to it; treat " +
				"that key as exposed and roll it.",
		})
	case m.rules.Key != "" && c.APIKey != m.rules.Key,
		!strings.HasPrefix(c.APIKey, "sk_test_") && !strings.HasPrefix(c.APIKey, "rk_test_"):
		return refusal(401, Error{Type: "invalid_request_error", Message: "Invalid API Key provided."})
	}
	return nil
}

func refusal(status int, err Error) *Response { return &Response{Status: status, Error: &err} }

func notFound(c *call) Response {
	return *refusal(404, Error{
		Type: "invalid_request_error",
		Message: fmt.Sprintf("Unrecognized request URL (%s: %s). Not modeled: this Stripe double only creates, "+
			"confirms, cancels, reads, lists and searches PaymentIntents, lists disputes, and creates, reads and "+
			"lists refunds.", c.Method, c.Path),
	})
}

// serverError is a 500 without a Stripe-Should-Retry header, because Stripe does not know
// the result.
func serverError() Response {
	const message = "An unknown error occurred. This is a fault of the Stripe double."
	return *refusal(500, Error{Type: "api_error", Message: message})
}

func lockTimeout() *Response {
	r := refusal(429, Error{
		Type: "invalid_request_error", Code: "lock_timeout",
		Message: "This object cannot be accessed right now because another API request or Stripe process is " +
			"currently accessing it.",
	})
	r.ShouldRetry = "true"
	return r
}

package stripetest

import (
	"fmt"
	"net/url"
	"strings"
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
	Form   url.Values // Body parameters of a POST, query parameters of a GET. Read-only from here on.
	Number int        // As in Call, for faults that mean this request alone; 0 for none.
}

// Endpoint says which operation a request means.
type Endpoint string

// The operations that are modeled.
const (
	Create  Endpoint = "create"
	Confirm Endpoint = "confirm"
	Cancel  Endpoint = "cancel"
	Read    Endpoint = "read"
	List    Endpoint = "list"
	Search  Endpoint = "search"
)

// RequestID counts requests; its string form is the Request-Id header.
type RequestID int

// String returns the Request-Id header's form, such as req_000001.
func (id RequestID) String() string { return fmt.Sprintf("req_%06d", int(id)) }

// Response is Stripe's answer. Intents inside it are shared with the machine and read-only.
type Response struct {
	Status      int
	RequestID   RequestID
	Original    RequestID // The request whose stored answer this replays; 0 for a first answer.
	ShouldRetry string    // The Stripe-Should-Retry header: true, false, or empty where Stripe gives no advice.
	Lost        bool      // The connection broke: the client sees nothing of this answer.
	Garbled     bool      // Only half of the body arrives, with this status.
	Intent      *Intent
	Charge      *Charge // The intent's latest charge, if it was asked for and there is one.
	List        *Page
	Error       *Error
}

// Replayed reports whether a key answered instead of an execution (header Idempotent-Replayed).
func (r Response) Replayed() bool { return r.Original != 0 }

// Error is the inside of Stripe's error body, and of an intent's last_payment_error.
type Error struct {
	Type, Code, DeclineCode, Message, Param string
	PaymentMethod                           string  // The method that was refused.
	Intent                                  *Intent // The intent as it is after the error.
}

// Page is one page of the list or of a search, newest first.
type Page struct {
	Intents []*Intent
	More    bool
	Search  bool
}

// route finds out what a request means, and for which order it is, before any of it is believed.
func (m *Machine) route(r Request) call {
	c := call{Request: r, number: m.requests}
	rest, below := strings.CutPrefix(r.Path, root+"/")
	id, verb, _ := strings.Cut(rest, "/")
	switch {
	case r.Method == post && r.Path == root:
		c.endpoint, c.orderID = Create, r.Form.Get("metadata[orderId]")
	case r.Method == get && r.Path == root:
		c.endpoint = List
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
	if intent := m.intent(c.intent); intent != nil {
		c.orderID = intent.OrderID()
	}
	return c
}

// account is whose the call is: what follows the prefix of its API key, so that a secret and a restricted key can be of one account.
// Intents and idempotency keys belong to it. Chosen for what the documents leave out: nobody can read the account off a real key.
func (c *call) account() string {
	return strings.TrimPrefix(strings.TrimPrefix(c.APIKey, "sk_test_"), "rk_test_")
}

// authenticate lets test keys in. docs.stripe.com/error-low-level: a 401 is not stored under the idempotency key.
func (m *Machine) authenticate(c *call) *Response {
	switch {
	case c.APIKey == "":
		return refusal(401, Error{Type: "invalid_request_error", Message: "You did not provide an API key."})
	case strings.HasPrefix(c.APIKey, "sk_live_"), strings.HasPrefix(c.APIKey, "rk_live_"):
		return refusal(401, Error{Type: "invalid_request_error", Message: "LIVE KEY REFUSED: this is a pretend Stripe for tests. " +
			"A live API key was sent to it; treat that key as exposed and roll it."})
	case m.rules.Key != "" && c.APIKey != m.rules.Key,
		!strings.HasPrefix(c.APIKey, "sk_test_") && !strings.HasPrefix(c.APIKey, "rk_test_"):
		return refusal(401, Error{Type: "invalid_request_error", Message: "Invalid API Key provided."})
	}
	return nil
}

func refusal(status int, err Error) *Response { return &Response{Status: status, Error: &err} }

func notFound(c call) Response {
	return *refusal(404, Error{
		Type: "invalid_request_error",
		Message: fmt.Sprintf("Unrecognized request URL (%s: %s). Not modeled: this pretend Stripe creates, confirms, cancels, reads, "+
			"lists and searches payment intents, and that is all.", c.Method, c.Path),
	})
}

// serverError is a 500 with no advice about retries: Stripe itself does not know.
func serverError() Response {
	return *refusal(500, Error{Type: "api_error", Message: "An unknown error occurred. This is a pretend fault."})
}

func lockTimeout() *Response {
	r := refusal(429, Error{
		Type: "invalid_request_error", Code: "lock_timeout",
		Message: "This object cannot be accessed right now because another API request or Stripe process is currently accessing it.",
	})
	r.ShouldRetry = "true"
	return r
}

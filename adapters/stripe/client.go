// Package stripe calls Stripe's API: it sends a request of stripe-go's, and decides what
// the response means for an order. Above it is one package for each effect: charge,
// refund, dispute, webhook and payer. It knows nothing of queues and tables.
//
// Only an Exchange does I/O. The package keeps no state, logs nothing and retries
// nothing: a redelivery of the message is the retry, and it goes through the claim. Only
// net/http may resend a request, under the same idempotency key, if a kept connection
// turns out to be closed.
//
// The API key may be a restricted one (docs.stripe.com/keys/restricted-api-keys). Each
// package above names the permissions that it needs, as does the error without one.
package stripe

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"orderonce/domain/order"
)

// DefaultTimeout is the Timeout of Options that have none.
const DefaultTimeout = 15 * time.Second

// Options configure the calls to Stripe. Only Key and Scope are required.
type Options struct {
	Key   string      // a secret or restricted API key; no error contains it
	Scope order.Scope // written to the metadata of every intent
	// BaseURL is the address of a Stripe double, without /v1; "" is Stripe. A live key is
	// sent to Stripe only.
	BaseURL string
	// Timeout bounds one call; 0 means DefaultTimeout. An order makes two or three calls,
	// so Timeout must be well below a third of the function's own, and
	// order.Processor.ConfirmTime must not be shorter.
	Timeout time.Duration
	// Transport sends the HTTP requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Dedicated is the transport that each session of refunds clones, to have a connection
	// of its own; nil means net/http's. Measure, if set, wraps the clone.
	Dedicated *http.Transport
	Measure   func(http.RoundTripper) http.RoundTripper
	// Now is the clock of refunds.
	Now func() time.Time
	// Exchange replaces HTTP, and with it BaseURL, Timeout and Transport, for a Stripe
	// double in the same process.
	Exchange Exchange
}

// Client makes calls to Stripe. It is safe for concurrent use.
type Client struct {
	misconfigured error // why no request is sent; nil if requests are sent
	exchange      Exchange
}

// New makes a Client. It sends nothing: an invalid key or BaseURL fails the first call.
func New(o Options) *Client {
	if o.Exchange != nil {
		return &Client{exchange: o.Exchange}
	}
	c := &Client{exchange: NewExchange(o)}
	if _, err := url.Parse(o.BaseURL); err != nil {
		c.misconfigured = errBaseURL
	}
	if o.BaseURL != "" && Live(o.Key) {
		c.misconfigured = ErrLiveKey
	}
	return c
}

var errBaseURL = errors.New("invalid base URL") // which may contain a password

// Over returns a client that sends its requests by another Exchange.
func (c *Client) Over(e Exchange) *Client { return &Client{c.misconfigured, e} }

// Call returns a call about no particular intent. The name starts each of its errors.
func (c *Client) Call(name string) *Call { return &Call{client: c, name: name} }

// IntentCall returns a call about an intent, whose id must be valid: it becomes part of a
// path, where "" would list every intent, and "pi_1/cancel" would cancel one.
func (c *Client) IntentCall(name string, id order.IntentID) *Call {
	return &Call{client: c, name: name, intent: id, invalidID: !order.ValidReference(string(id))}
}

// CallName is the method and path of an HTTP request, with "{id}" in place of an object's
// id. It is the name of the call in metrics.
func CallName(r *http.Request) string {
	_, path, _ := strings.Cut(r.URL.Path, "/v1/")
	if object, rest, found := strings.Cut(path, "/"); found && rest != "search" {
		_, action, acts := strings.Cut(rest, "/")
		if path = object + "/{id}"; acts {
			path += "/" + action
		}
	}
	return r.Method + " /v1/" + path
}

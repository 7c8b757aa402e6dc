// Package stripe is order.Payments, order.Canceler, order.Disputes and receipt.Payers
// over Stripe's API. It turns an order into requests and each response into an intent or
// an error, and it knows nothing of queues and tables.
//
// parse decodes a response and classify interprets it; both are pure.
// Only an Exchange does I/O. The package keeps no state, logs nothing and retries
// nothing: a redelivery of the message is the retry, and it goes through the claim. Only
// net/http may resend a request, under the same idempotency key, if a kept connection
// turns out to be closed. A refund must not be resent, so a session of Refunds has its
// own connection.
//
// The API key may be a restricted one with the permissions "PaymentIntents: Write",
// "Charges and Refunds: Read", to explain a failed intent that was edited since, and
// "Disputes: Read", to record disputes (docs.stripe.com/keys/restricted-api-keys). A
// Refunds needs "PaymentIntents: Read" and "Charges and Refunds: Read", and to make
// refunds "Charges and Refunds: Write". Payer needs "PaymentIntents: Read" and
// "Customers: Read". If a permission is missing, the error is Misconfigured and names the
// permission.
package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

// DefaultTimeout is the Timeout of Options that have none.
const DefaultTimeout = 15 * time.Second

// Options configure a Payments. Only Key and Scope are required.
type Options struct {
	Key   string      // a secret or restricted API key; no error contains it
	Scope order.Scope // written to the metadata of every intent
	// BaseURL is the address of a Stripe double, without /v1; "" is Stripe. A live key is
	// sent to Stripe only.
	BaseURL string
	// Timeout bounds one call from dialing to the last byte of the response; 0 means
	// DefaultTimeout. An order makes two or three calls, so Timeout must be well below a
	// third of the function's own, and order.Processor.ConfirmTime must not be shorter.
	Timeout time.Duration
	// Transport sends the HTTP requests; nil means http.DefaultTransport, which keeps only
	// two idle connections.
	Transport http.RoundTripper
	// Dedicated is the transport that each session of Refunds clones, to have a connection
	// of its own; nil means net/http's. Measure, if set, wraps the clone.
	Dedicated *http.Transport
	Measure   func(http.RoundTripper) http.RoundTripper
	// Now is the clock of Refunds.
	Now func() time.Time
	// Exchange replaces HTTP, and with it BaseURL, Timeout and Transport. It is for
	// programs that run the adapter against a Stripe double in the same process.
	Exchange Exchange
}

// Payments calls Stripe. It is safe for concurrent use.
type Payments struct {
	sender
	scope order.Scope
}

// sender sends calls.
type sender struct {
	apiKey        string
	misconfigured error // why no request is sent; nil if requests are sent
	exchange      Exchange
}

var (
	_ order.Payments = (*Payments)(nil)
	_ order.Canceler = (*Payments)(nil)
)

// New makes a Payments. It sends nothing: an invalid key or BaseURL fails the first call,
// with a *order.PaymentError of kind Misconfigured.
func New(o Options) *Payments {
	p := &Payments{newSender(o), o.Scope}
	if p.exchange = o.Exchange; p.exchange == nil {
		p.exchange = newClient(p.apiKey, o).exchange
	}
	return p
}

// newSender returns a sender without an Exchange.
func newSender(o Options) sender {
	// Secrets are often stored with a newline, which no header may contain.
	s := sender{apiKey: strings.TrimSpace(o.Key)}
	if o.Exchange == nil {
		s.misconfigured = checkBaseURL(o.Key, o.BaseURL)
	}
	return s
}

func checkBaseURL(key, baseURL string) error {
	if baseURL != "" && Live(key) {
		return ErrLiveKey
	}
	if _, err := url.Parse(baseURL); err != nil {
		return errBaseURL
	}
	return nil
}

var errBaseURL = errors.New("invalid base URL") // which may contain a password

func newClient(key string, o Options) *client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.BaseURL == "" {
		o.BaseURL = stripe.APIURL
	}
	return &client{
		key: key,
		backend: &stripe.BackendImplementation{ // the zero value sends no telemetry
			Type: stripe.APIBackend,
			URL:  strings.TrimSuffix(o.BaseURL, "/"),
			HTTPClient: &http.Client{
				Transport: o.Transport,
				Timeout:   o.Timeout,
				// Stripe never redirects: do not follow anyone else's redirect.
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
			// The default would print responses.
			LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
			// Redelivery is our retry; stripe-go's retries sleep past deadlines.
			MaxNetworkRetries: 0,
		},
	}
}

// Prepare creates an unconfirmed intent, which cannot move money yet.
//
// A replayed response shows the intent as it was when it was created. It may have been
// canceled since, so Prepare reads it again.
func (p *Payments) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	r, err := p.do(ctx, prepareCall(o, p.scope, k))
	if err == nil && r.replayed {
		return p.Read(ctx, r.ID)
	}
	return r.Intent, err
}

// Confirm charges the payment method that Prepare named.
//
// A response is replayed only if net/http resent the request, or if a restore from backup
// made the table count an attempt twice. A replay may be out of date, because the
// customer may have paid a declined intent since, so Confirm reads the intent again.
// Nothing can undo a success.
func (p *Payments) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	r, err := p.do(ctx, confirmCall(id, k))
	if err == nil && r.replayed && r.State != order.Succeeded {
		return p.Read(ctx, id)
	}
	return p.explain(ctx, r, err)
}

// CancelIntent cancels the intent. If Stripe refuses, because it has succeeded, was
// canceled or is processing, the error shows it
// (docs.stripe.com/api/payment_intents/cancel).
func (p *Payments) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	r, err := p.do(ctx, cancelCall(id, k))
	if err == nil && r.replayed {
		return p.Read(ctx, id)
	}
	return p.explain(ctx, r, err)
}

// Read retrieves the intent. Unlike Stripe's search, a retrieval does not lag behind
// writes (docs.stripe.com/search). If the intent has failed and its last error was
// cleared, a second call reads its latest charge for the reason.
func (p *Payments) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	r, err := p.do(ctx, readCall(id))
	return p.explain(ctx, r, err)
}

// Find searches for the intents whose metadata name the order and this scope. Stripe's
// search lags behind writes, by up to an hour in an outage (docs.stripe.com/search), so
// Find is for orders that are older than a day.
func (p *Payments) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	c := findCall(id, p.scope)
	response, err := p.send(ctx, &c)
	if err != nil {
		return nil, err
	}
	return c.classifyPage(response)
}

// explain returns the intent of a result. If its last error was cleared, explain reads it
// again with its latest charge, so that a payment that needs authentication is not taken
// for a decline. It reads the intent and not the charge alone, because the customer may
// have paid meanwhile.
func (p *Payments) explain(ctx context.Context, r result, err error) (order.Intent, error) {
	if err != nil || !r.needsCharge {
		return r.Intent, err
	}
	c := readChargeCall(r.ID)
	r, err = p.do(ctx, c)
	if err == nil && r.needsCharge {
		err = c.fail(order.KindMisconfigured, parsed{}, errNotExpanded)
	}
	if err != nil {
		return order.Intent{}, err
	}
	return r.Intent, nil
}

var errNotExpanded = errors.New("latest charge not expanded: got only its id")

// do sends a request and interprets the response.
func (p *Payments) do(ctx context.Context, c call) (result, error) {
	response, err := p.send(ctx, &c)
	if err != nil {
		return result{}, err
	}
	return c.classify(response)
}

// send sends a request unless it must not be sent. Every error is a *order.PaymentError.
func (s sender) send(ctx context.Context, c *call) (parsed, error) {
	c.apiKey = s.apiKey
	if err := c.validate(); err != nil {
		return parsed{}, err
	}
	if s.misconfigured != nil {
		return parsed{}, c.fail(order.KindMisconfigured, parsed{}, s.misconfigured)
	}
	response, err := s.exchange(ctx, c.Request)
	switch {
	case errors.Is(err, ErrNotSent):
		err = fmt.Errorf("%w: %w", ErrNotSent, networkError(err))
		return parsed{}, c.fail(order.KindUnavailable, parsed{}, err)
	case err != nil:
		return parsed{}, c.fail(order.KindUnknown, parsed{}, networkError(err))
	}
	return parse(response), nil
}

// CallName is the method and path of an HTTP request, with "{id}" in place of the intent
// or refund. It is the name of the call in metrics.
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

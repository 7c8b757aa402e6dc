// Package stripe is order.Payments, order.Canceler and order.Disputes over Stripe's API.
// It turns an order into requests and each response into an intent or an error, and it
// knows nothing of queues and tables.
//
// Interpreting a response is two pure functions: parse decodes it, classify says what it
// means for the order. Only an Exchange does I/O.
//
// The package keeps no state, logs nothing and retries nothing: a redelivery of the
// message is the retry, and it goes through the claim. (Only net/http may resend a
// request, under the same idempotency key, if a kept connection turns out to be closed.
// A refund must not be resent, so a session of Refunds has a connection of its own.)
//
// The API key may be a restricted one with three permissions, "PaymentIntents: Write",
// which includes Read, "Charges and Refunds: Read" and "Disputes: Read"
// (docs.stripe.com/keys/restricted-api-keys). The second is needed only to explain a
// failed intent that was edited since: the edit clears its last error, and then its
// latest charge holds the reason. The third is needed only to record disputes. A Refunds
// needs "PaymentIntents: Read" and "Charges and Refunds: Read", and to make refunds
// "Charges and Refunds: Write". If a permission is missing, the error is Misconfigured
// and names the permission.
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

// DefaultTimeout is used if Options has no Timeout: long for a card network, short for a
// function that runs for a minute.
const DefaultTimeout = 15 * time.Second

// idleConnsPerHost is how many connections the default transport keeps. net/http keeps
// two, so a batch of ten concurrent orders would make eight TLS handshakes again and
// again.
const idleConnsPerHost = 100

// Options configure a Payments. Only Key and Scope are required.
type Options struct {
	// Key is a secret or restricted API key. It is sent in one header and is never part
	// of an error.
	Key string
	// Scope is written to the metadata of every intent, to tell apart the deployments
	// that share an account.
	Scope order.Scope
	// BaseURL is the address of a Stripe double, without /v1; "" is Stripe. A live key is
	// sent to no address but Stripe's.
	BaseURL string
	// Timeout bounds one call from dialing to the last byte of the response; 0 means
	// DefaultTimeout. An order makes two or three calls, so Timeout must be well below a
	// third of the function's own, and order.Processor.ConfirmTime must not be shorter.
	Timeout time.Duration
	// Transport sends the HTTP requests, for example to measure them. nil means
	// net/http's with more idle connections.
	Transport http.RoundTripper
	// Dedicated is the transport that each session of Refunds clones, to have a connection
	// of its own; nil means net/http's. Measure, if set, wraps the clone, for example to
	// measure its requests.
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
	if err := checkLiveKey(key, baseURL); err != nil {
		return err
	}
	if _, err := url.Parse(baseURL); err != nil {
		return redactedError{err, redactIDs(err.Error())}
	}
	return nil
}

func newClient(key string, o Options) *client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.BaseURL == "" {
		o.BaseURL = stripe.APIURL
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			MaxIdleConnsPerHost: idleConnsPerHost, IdleConnTimeout: 90 * time.Second,
		}
	}
	return &client{
		key: key,
		backend: &stripe.BackendImplementation{ // the zero value sends no telemetry
			Type: stripe.APIBackend,
			URL:  strings.TrimSuffix(o.BaseURL, "/"),
			HTTPClient: &http.Client{
				Transport: o.Transport,
				Timeout:   o.Timeout,
				// Stripe never redirects, so do not send our requests wherever a redirect
				// points.
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
// Each attempt has its own key, so a response is replayed only if net/http resent the
// request, or if the table was restored from a backup and counted an attempt twice. A
// replay may be out of date, unless it shows a success, which nothing can undo: the
// customer may have paid a declined intent since. So Confirm reads the intent again.
func (p *Payments) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	r, err := p.do(ctx, confirmCall(id, k))
	if err == nil && r.replayed && r.State != order.Succeeded {
		return p.Read(ctx, id)
	}
	return p.explain(ctx, r, err)
}

// CancelIntent cancels the intent. Stripe refuses to cancel one that has succeeded or was
// canceled, and in most cases one that is processing, and shows it in the error
// (docs.stripe.com/api/payment_intents/cancel). A replay may be out of date, so it is
// read again.
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
// search lags behind writes, by less than a minute and by up to an hour in an outage
// (docs.stripe.com/search), so Find is for orders that are older than a day.
func (p *Payments) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	c := findCall(id, p.scope)
	response, err := p.send(ctx, &c)
	if err != nil {
		return nil, err
	}
	return c.classifyPage(parse(response))
}

// explain returns the intent of a result. If the intent has failed and its last error was
// cleared, explain reads it again with its latest charge, because a payment that needs
// authentication must not be taken for a decline. It reads the intent and not the charge,
// so that both are of the same moment: the customer may have paid meanwhile.
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
	return c.classify(parse(response))
}

// send sends a request unless it must not be sent. Every error is a *order.PaymentError.
func (s sender) send(ctx context.Context, c *call) (Response, error) {
	c.apiKey = s.apiKey
	if err := c.validate(); err != nil {
		return Response{}, err
	}
	if s.misconfigured != nil {
		return Response{}, c.fail(order.KindMisconfigured, parsed{}, s.misconfigured)
	}
	response, err := s.exchange(ctx, c.Request)
	switch {
	case errors.Is(err, ErrNotSent):
		err = fmt.Errorf("%w: %w", ErrNotSent, c.redactNetwork(err))
		return Response{}, c.fail(order.KindUnavailable, parsed{}, err)
	case err != nil:
		return Response{}, c.fail(order.KindUnknown, parsed{}, c.redactNetwork(err))
	}
	return response, nil
}

// CallName is the method and path of an HTTP request, with "{id}" in place of the intent
// or refund. It is the name of the call in metrics.
func CallName(r *http.Request) string {
	if r.URL.Path == searchPath || r.URL.Path == disputesPath {
		return r.Method + " " + r.URL.Path
	}
	if _, id, found := strings.Cut(r.URL.Path, refundsPath); found {
		if id != "" {
			id = "/{id}"
		}
		return r.Method + " " + refundsPath + id
	}
	name := r.Method + " " + intentsPath
	_, rest, ofIntent := strings.Cut(r.URL.Path, intentsPath+"/")
	if !ofIntent {
		return name
	}
	name += "/{id}"
	if _, action, found := strings.Cut(rest, "/"); found {
		name += "/" + action
	}
	return name
}

// Package stripe is order.Payments over Stripe's PaymentIntents: how an order becomes parameters, and what each of Stripe's
// answers means for money. It knows nothing of queues and tables, keeps no state, logs nothing, and repeats no request:
// redelivery is our retry, and it comes back through the claim. (net/http alone may repeat one, under the same key, if a
// kept connection turns out to be dead.)
//
// The key may be a restricted one with two permissions: "PaymentIntents: Write", which includes to read them, and
// "Charges and Refunds: Read" (docs.stripe.com/keys/restricted-api-keys). The second one is needed only for an intent
// that has failed and was edited since, which clears its last error: then the latest charge tells why it failed. If a
// permission is missing, the call is Misconfigured and its error names the permission.
package stripe

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

// DefaultTimeout is for Options without a Timeout: long for a card network, short for a function of a minute.
const DefaultTimeout = 15 * time.Second

// idleConns is how many connections are kept for the next orders, when no Transport is given. net/http keeps two, so a
// batch that runs ten orders at once would make eight TLS handshakes again and again.
const idleConns = 100

// Options are what the environment decides. Only Key and Scope are needed.
type Options struct {
	Key     string      // secret or restricted; sent in one header and never part of an error
	Scope   order.Scope // what the intents' metadata say, to tell deployments on one account apart
	BaseURL string      // without /v1, such as a pretend Stripe's; "" is Stripe; with a live key, nothing else is called
	// Timeout bounds one call from dialing to the last byte of its answer; 0 is DefaultTimeout. An order makes two or
	// three calls, so it has to be well below a third of the function's own, and order.Processor.ConfirmTime no less.
	Timeout   time.Duration
	Transport http.RoundTripper // for example one that measures; nil is net/http's with more idle connections
}

// Payments is Stripe. It is safe for concurrent use.
type Payments struct {
	key     string
	scope   order.Scope
	refusal error // why nothing is sent
	backend *stripe.BackendImplementation
}

var _ order.Payments = (*Payments)(nil)

// New makes a Payments. Nothing is sent before the first order.
func New(o Options) *Payments {
	refusal := checkAddress(o.Key, o.BaseURL) // before Stripe's own URL takes the place of ""
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.BaseURL == "" {
		o.BaseURL = stripe.APIURL
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			MaxIdleConnsPerHost: idleConns, IdleConnTimeout: 90 * time.Second,
		}
	}
	return &Payments{
		key:     strings.TrimSpace(o.Key), // secrets are often stored with a newline, which no header may hold
		scope:   o.Scope,
		refusal: refusal,
		backend: &stripe.BackendImplementation{ // its zero value sends no telemetry
			Type: stripe.APIBackend,
			URL:  strings.TrimSuffix(o.BaseURL, "/"),
			HTTPClient: &http.Client{
				Transport: o.Transport,
				Timeout:   o.Timeout,
				// Stripe redirects nothing; whoever does shall not get our requests.
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
			LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // it would print answers
			MaxNetworkRetries: 0,                                              // redelivery is our retry; these sleep through deadlines
		},
	}
}

// Prepare creates an unconfirmed intent. Its payment methods are those that need no page of their own, because there is
// no customer to send there.
//
// Everything that is sent follows from the order alone, whose fingerprint is the one that its record carries: so an attempt
// of another release sends the same words under the same key. Words that change need another order.PrepareKey.
//
// A replayed response shows the intent as it was when it was created. Somebody may have canceled it since, so it is read again.
func (p *Payments) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	total, payment := o.Total(), o.Payment()
	r, err := p.do(ctx, call{
		name: "prepare order " + string(o.ID()), method: http.MethodPost, path: intents, key: k,
		params: &stripe.PaymentIntentParams{
			Amount:        new(total.Amount),
			Currency:      new(string(total.Currency)),
			Customer:      new(payment.Customer),
			PaymentMethod: new(payment.Method),
			CaptureMethod: new(string(stripe.PaymentIntentCaptureMethodAutomatic)),
			AutomaticPaymentMethods: &stripe.PaymentIntentAutomaticPaymentMethodsParams{
				Enabled:        new(true),
				AllowRedirects: new(string(stripe.PaymentIntentAutomaticPaymentMethodsAllowRedirectsNever)),
			},
			Metadata: map[string]string{
				metaOrder: string(o.ID()), metaScope: string(p.scope), metaFingerprint: string(o.Fingerprint()),
			},
		},
	})
	if err == nil && r.replayed {
		return p.Read(ctx, r.ID)
	}
	return r.Intent, err
}

// Confirm charges the payment method that Prepare named. It names none itself, so that an intent whose card was declined,
// and which has none any more, is refused instead of charged.
//
// Keys are per attempt, so a replay answers a repeat within net/http or an attempt that was counted before the table was
// restored from a backup. What it tells may be long past, unless it is the success that nothing can undo: the customer
// may have paid a declined intent since. So the intent is read again.
func (p *Payments) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	r, err := p.do(ctx, call{
		name: "confirm intent " + string(id), method: http.MethodPost, path: intents + "/" + string(id) + "/confirm", key: k,
		bound: id, params: &stripe.PaymentIntentConfirmParams{OffSession: new(true)},
	})
	if err == nil && r.replayed && r.State != order.Succeeded {
		return p.Read(ctx, id)
	}
	return p.explained(ctx, id, r, err)
}

// Read retrieves the intent. Retrieval, unlike Stripe's search, does not lag behind writes (docs.stripe.com/search).
// It takes a second call to tell why an intent has failed whose last error was cleared: see explained.
func (p *Payments) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	r, err := p.do(ctx, call{
		name: "read intent " + string(id), method: http.MethodGet, path: intents + "/" + string(id), bound: id,
	})
	return p.explained(ctx, id, r, err)
}

// CallName is a request's method and path with "{id}" for the intent, as the name of a metric.
func CallName(r *http.Request) string {
	name := r.Method + " " + intents
	if r.URL.Path == search {
		return r.Method + " " + search
	}
	if _, rest, one := strings.Cut(r.URL.Path, intents+"/"); one {
		_, action, acts := strings.Cut(rest, "/")
		name += "/{id}"
		if acts {
			name += "/" + action
		}
	}
	return name
}

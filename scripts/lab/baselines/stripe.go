package baselines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"
)

// StripeOptions configure a Stripe client.
type StripeOptions struct {
	Key     string // the secret API key
	BaseURL string // without /v1
	// Transport sends the requests, in the calling goroutine; nil is
	// http.DefaultTransport.
	Transport http.RoundTripper
	Timeout   time.Duration // of one request; 0 sets no timer, which a simulated clock needs
	NewKey    func() string // the idempotency key of a charge without one; nil: stripe-go's random keys
}

// Stripe is a client with the defaults of stripe-go, among them two retries. The retries
// come without stripe-go's delay. It is safe for concurrent use.
type Stripe struct {
	key     string
	newKey  func() string
	backend *stripe.BackendImplementation
}

// NewStripe returns a client. It sends nothing before the first charge.
func NewStripe(o StripeOptions) *Stripe {
	if o.NewKey == nil {
		o.NewKey = stripe.NewIdempotencyKey
	}
	return &Stripe{key: o.Key, newKey: o.NewKey, backend: &stripe.BackendImplementation{
		Type: stripe.APIBackend, URL: o.BaseURL,
		HTTPClient:        &http.Client{Transport: o.Transport, Timeout: o.Timeout},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.DefaultMaxNetworkRetries,
	}}
}

const intents = "/v1/payment_intents"

// intent is the part of a PaymentIntent that is read.
type intent struct {
	stripe.APIResource

	ID       string                     `json:"id"`
	Status   stripe.PaymentIntentStatus `json:"status"`
	Metadata map[string]string          `json:"metadata"`
}

type page struct {
	stripe.APIResource

	Data    []intent `json:"data"`
	HasMore bool     `json:"has_more"`
}

// charge creates and confirms an intent in one call, as Stripe's quickstarts do. key is
// the idempotency key, or "" for a random one. A decline is a result and is not retried.
// Any other failure is an error, after which the message is redelivered.
func (s *Stripe) charge(ctx context.Context, o order, key string) (payment, error) {
	if key == "" {
		key = s.newKey()
	}
	var got intent
	err := s.backend.Call(http.MethodPost, intents, s.key, &stripe.PaymentIntentParams{
		Params: stripe.Params{Context: ctx, IdempotencyKey: &key},
		Amount: new(o.amount()), Currency: &o.Currency,
		Customer: &o.Payment.Customer, PaymentMethod: &o.Payment.Method,
		Confirm: new(true), OffSession: new(true), Metadata: map[string]string{"orderId": o.ID},
	}, &got)
	var declined *stripe.Error
	switch {
	case errors.As(err, &declined) && declined.Type == stripe.ErrorTypeCard:
		return payment{Failed, intentID(declined)}, nil
	case err != nil:
		return payment{}, fmt.Errorf("charge order %q: %w", o.ID, err)
	case got.Status == stripe.PaymentIntentStatusSucceeded:
		return payment{Paid, got.ID}, nil
	}
	return payment{Pending, got.ID}, nil
}

func intentID(e *stripe.Error) string {
	if e.PaymentIntent == nil {
		return ""
	}
	return e.PaymentIntent.ID
}

// find searches all intents of the customer for one of the order, newest first.
func (s *Stripe) find(ctx context.Context, o order) (p payment, found bool, err error) {
	params := &stripe.PaymentIntentListParams{
		ListParams: stripe.ListParams{Limit: new(int64(100))}, Customer: &o.Payment.Customer,
	}
	for more := true; more; {
		values := &form.Values{}
		form.AppendTo(values, params)
		var got page
		raw := &stripe.Params{Context: ctx}
		if err := s.backend.CallRaw(http.MethodGet, intents, s.key, values, raw, &got); err != nil {
			return payment{}, false, fmt.Errorf("look up order %q: %w", o.ID, err)
		}
		for _, i := range got.Data {
			if i.Metadata["orderId"] == o.ID {
				return payment{statusOf(i.Status), i.ID}, true, nil
			}
			params.StartingAfter = new(i.ID)
		}
		more = got.HasMore
	}
	return payment{}, false, nil
}

// statusOf maps the status of an intent. An intent that was created and confirmed in one
// call lacks a payment method only after a decline.
func statusOf(s stripe.PaymentIntentStatus) Status {
	if s == stripe.PaymentIntentStatusSucceeded {
		return Paid
	}
	if s == stripe.PaymentIntentStatusRequiresPaymentMethod || s == stripe.PaymentIntentStatusCanceled {
		return Failed
	}
	return Pending
}

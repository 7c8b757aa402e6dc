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

// StripeOptions are how to reach Stripe.
type StripeOptions struct {
	Key     string // secret
	BaseURL string // without /v1
	// Transport carries the requests, in the goroutine of the design that asks; nil is net/http's.
	Transport http.RoundTripper
	Timeout   time.Duration // of one request; 0 sets no timer, as a world needs whose time is a number. stripe-go's is 80 s
	NewKey    func() string // what stripe-go draws for a write without a key; nil lets it draw
}

// Stripe is a typical integration: stripe-go with its defaults, of which two retries of what may be retried matter most.
// They come at once, without its half second of sleep. It is safe for concurrent use.
type Stripe struct {
	key     string
	newKey  func() string
	backend *stripe.BackendImplementation
}

// NewStripe makes a Stripe. Nothing is sent before the first order.
func NewStripe(o StripeOptions) *Stripe {
	if o.NewKey == nil {
		o.NewKey = stripe.NewIdempotencyKey
	}
	return &Stripe{key: o.Key, newKey: o.NewKey, backend: &stripe.BackendImplementation{
		Type: stripe.APIBackend, URL: o.BaseURL, HTTPClient: &http.Client{Transport: o.Transport, Timeout: o.Timeout},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.DefaultMaxNetworkRetries,
	}}
}

const intents = "/v1/payment_intents"

// intent is what a typical integration reads of one.
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

// pay creates and confirms an intent in one call, as quickstarts do, under the key or, if that is "", under one that nobody will
// ever use again. A decline is a result: it is not tried again. Everything else that is no intent is an error, for which the
// message comes back.
func (s *Stripe) pay(ctx context.Context, o order, key string) (payment, error) {
	if key == "" {
		key = s.newKey()
	}
	var got intent
	err := s.backend.Call(http.MethodPost, intents, s.key, &stripe.PaymentIntentParams{
		Params: stripe.Params{Context: ctx, IdempotencyKey: &key},
		Amount: new(o.amount()), Currency: &o.Currency, Customer: &o.Payment.Customer, PaymentMethod: &o.Payment.Method,
		Confirm: new(true), OffSession: new(true), Metadata: map[string]string{"orderId": o.ID},
	}, &got)
	var refused *stripe.Error
	switch {
	case errors.As(err, &refused) && refused.Type == stripe.ErrorTypeCard:
		return payment{Failed, idOf(refused)}, nil
	case err != nil:
		return payment{}, fmt.Errorf("charge order %q: %w", o.ID, err)
	case got.Status == stripe.PaymentIntentStatusSucceeded:
		return payment{Paid, got.ID}, nil
	}
	return payment{Pending, got.ID}, nil
}

func idOf(e *stripe.Error) string {
	if e.PaymentIntent == nil {
		return ""
	}
	return e.PaymentIntent.ID
}

// find looks for an intent of the order among all of the customer's, newest first.
func (s *Stripe) find(ctx context.Context, o order) (p payment, found bool, err error) {
	params := &stripe.PaymentIntentListParams{
		ListParams: stripe.ListParams{Limit: new(int64(100))}, Customer: &o.Payment.Customer,
	}
	for more := true; more; {
		values := &form.Values{}
		form.AppendTo(values, params)
		var got page
		if err := s.backend.CallRaw(http.MethodGet, intents, s.key, values, &stripe.Params{Context: ctx}, &got); err != nil {
			return payment{}, false, fmt.Errorf("look order %q up: %w", o.ID, err)
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

// statusOf is what a found intent means. One that was created and confirmed in one call has no payment method only after a decline.
func statusOf(s stripe.PaymentIntentStatus) Status {
	if s == stripe.PaymentIntentStatusSucceeded {
		return Paid
	}
	if s == stripe.PaymentIntentStatusRequiresPaymentMethod || s == stripe.PaymentIntentStatusCanceled {
		return Failed
	}
	return Pending
}

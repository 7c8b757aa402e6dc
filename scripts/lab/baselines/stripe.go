package baselines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/paymentintent"
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
	newKey  func() string
	intents paymentintent.Client
}

// NewStripe returns a client. It sends nothing before the first charge.
func NewStripe(o StripeOptions) *Stripe {
	if o.NewKey == nil {
		o.NewKey = stripe.NewIdempotencyKey
	}
	return &Stripe{o.NewKey, paymentintent.Client{Key: o.Key, B: &stripe.BackendImplementation{
		Type: stripe.APIBackend, URL: o.BaseURL,
		HTTPClient:        &http.Client{Transport: o.Transport, Timeout: o.Timeout},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.DefaultMaxNetworkRetries,
	}}}
}

// charge creates and confirms an intent in one call, as Stripe's quickstarts do. key is
// the idempotency key, or "" for a random one. A decline is a result and is not retried.
// Any other failure is an error, after which the message is redelivered.
func (s *Stripe) charge(ctx context.Context, o order, key string) (Status, error) {
	if key == "" {
		key = s.newKey()
	}
	got, err := s.intents.New(&stripe.PaymentIntentParams{
		Params: stripe.Params{Context: ctx, IdempotencyKey: &key},
		Amount: new(o.amount()), Currency: &o.Currency,
		Customer: &o.Payment.Customer, PaymentMethod: &o.Payment.Method,
		Confirm: new(true), OffSession: new(true), Metadata: map[string]string{"orderId": o.ID},
	})
	var declined *stripe.Error
	switch {
	case errors.As(err, &declined) && declined.Type == stripe.ErrorTypeCard && declined.PaymentIntent != nil:
		return Failed, nil
	case err != nil:
		return "", fmt.Errorf("charge order %q: %w", o.ID, err)
	}
	return statusOf(got.Status), nil
}

// create creates an intent without confirming it, and returns its id.
func (s *Stripe) create(ctx context.Context, o order, key string) (id string, err error) {
	got, err := s.intents.New(&stripe.PaymentIntentParams{
		Params: stripe.Params{Context: ctx, IdempotencyKey: &key},
		Amount: new(o.amount()), Currency: &o.Currency,
		Customer: &o.Payment.Customer, PaymentMethod: &o.Payment.Method,
		Metadata: map[string]string{"orderId": o.ID},
	})
	if err != nil {
		return "", fmt.Errorf("create the intent of order %q: %w", o.ID, err)
	}
	return got.ID, nil
}

// confirm confirms an intent under a random key. After an error it reads the intent,
// which may have been charged by this call or another one, or declined.
func (s *Stripe) confirm(ctx context.Context, o order, id string) (Status, error) {
	got, err := s.intents.Confirm(id, &stripe.PaymentIntentConfirmParams{
		Params: stripe.Params{Context: ctx, IdempotencyKey: new(s.newKey())}, OffSession: new(true),
	})
	if err != nil {
		var read error
		got, read = s.intents.Get(id, &stripe.PaymentIntentParams{Params: stripe.Params{Context: ctx}})
		if read != nil || got.Status == stripe.PaymentIntentStatusRequiresConfirmation {
			return "", fmt.Errorf("confirm order %q: %w", o.ID, errors.Join(err, read))
		}
	}
	return statusOf(got.Status), nil
}

// find searches all intents of the customer for one of the order, newest first. It
// returns "" if there is none.
func (s *Stripe) find(ctx context.Context, o order) (Status, error) {
	all := s.intents.List(&stripe.PaymentIntentListParams{
		ListParams: stripe.ListParams{Context: ctx, Limit: new(int64(100))}, Customer: &o.Payment.Customer,
	})
	for all.Next() {
		if i := all.PaymentIntent(); i.Metadata["orderId"] == o.ID {
			return statusOf(i.Status), nil
		}
	}
	if err := all.Err(); err != nil {
		return "", fmt.Errorf("look up order %q: %w", o.ID, err)
	}
	return "", nil
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

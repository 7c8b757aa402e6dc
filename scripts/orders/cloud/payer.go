package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/customer"
	"github.com/stripe/stripe-go/v76/paymentmethod"

	"orderonce/domain/order"
)

// Payers creates payers at Stripe.
type Payers struct {
	customers customer.Client
	methods   paymentmethod.Client
}

// NewPayers returns what creates payers with the environment's key.
func NewPayers(c Env) Payers {
	settings := &stripe.BackendConfig{
		HTTPClient:        HTTPClient(),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // errors are returned
		EnableTelemetry:   new(false),
		MaxNetworkRetries: new(int64(2)), // no redelivery retries this call
	}
	if c.StripeURL != "" {
		settings.URL = new(string(c.StripeURL))
	}
	backend, key := stripe.GetBackendWithConfig(stripe.APIBackend, settings), c.Key.Reveal()
	return Payers{customer.Client{B: backend, Key: key}, paymentmethod.Client{B: backend, Key: key}}
}

// Create creates a customer with a card. The order's payment method must belong to its
// customer, and Stripe's test card belongs to none: attaching it creates a payment method
// with an id of its own (docs.stripe.com/testing, "Payment methods"). Name is part of the
// idempotency keys.
func (t Payers) Create(ctx context.Context, name string) (order.Payment, error) {
	params := &stripe.CustomerParams{Description: new(name)}
	params.Context, params.IdempotencyKey = ctx, new(name+"/customer")
	who, err := t.customers.New(params)
	if err != nil {
		return order.Payment{}, fmt.Errorf("create a customer at Stripe: %w", stripeMessage(err))
	}
	attach := &stripe.PaymentMethodAttachParams{Customer: &who.ID}
	attach.Context, attach.IdempotencyKey = ctx, new(name+"/method")
	method, err := t.methods.Attach("pm_card_visa", attach)
	if err != nil {
		return order.Payment{}, fmt.Errorf("attach pm_card_visa to customer %s: %w", who.ID, stripeMessage(err))
	}
	return order.Payment{Customer: who.ID, Method: method.ID}, nil
}

// stripeMessage reduces an error of Stripe from JSON to status and message.
func stripeMessage(err error) error {
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		return err
	}
	text := fmt.Sprintf("status %d: %s", e.HTTPStatusCode, e.Msg)
	switch e.HTTPStatusCode {
	case http.StatusForbidden, http.StatusNotFound: // a restricted key, or a pretend Stripe
		text += "; name an existing payer with --customer and --method"
	}
	return errors.New(text)
}

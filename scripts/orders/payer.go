package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/customer"
	"github.com/stripe/stripe-go/v76/paymentmethod"
)

// payer is a customer of Stripe and one of its payment methods.
type payer struct{ Customer, Method string }

// payers creates payers at Stripe.
type payers struct {
	customers customer.Client
	methods   paymentmethod.Client
}

func newPayers(c stripeConfig) payers {
	settings := &stripe.BackendConfig{
		HTTPClient:        httpClient(),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // errors are returned
		EnableTelemetry:   new(false),
		MaxNetworkRetries: new(int64(2)), // no redelivery retries this call
	}
	if c.Address != "" {
		settings.URL = new(string(c.Address))
	}
	backend, key := stripe.GetBackendWithConfig(stripe.APIBackend, settings), c.Key.Reveal()
	return payers{customer.Client{B: backend, Key: key}, paymentmethod.Client{B: backend, Key: key}}
}

// create creates a customer with a card. The order's payment method must belong to its
// customer, and Stripe's test card belongs to none: attaching it creates a payment method
// with an id of its own (docs.stripe.com/testing, "Payment methods"). Name is part of the
// idempotency keys.
func (t payers) create(ctx context.Context, name string) (payer, error) {
	params := &stripe.CustomerParams{Description: new(name)}
	params.Context, params.IdempotencyKey = ctx, new(name+"/customer")
	who, err := t.customers.New(params)
	if err != nil {
		return payer{}, fmt.Errorf("create a customer at Stripe: %w", stripeMessage(err))
	}
	attach := &stripe.PaymentMethodAttachParams{Customer: &who.ID}
	attach.Context, attach.IdempotencyKey = ctx, new(name+"/method")
	method, err := t.methods.Attach("pm_card_visa", attach)
	if err != nil {
		return payer{}, fmt.Errorf("attach pm_card_visa to customer %s: %w", who.ID, stripeMessage(err))
	}
	return payer{who.ID, method.ID}, nil
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

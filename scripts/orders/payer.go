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

// payer is who pays, by Stripe's ids.
type payer struct{ Customer, Method string }

// till makes payers at Stripe.
type till struct {
	customers customer.Client
	methods   paymentmethod.Client
}

func newTill(c stripeConfig) till {
	settings := &stripe.BackendConfig{
		HTTPClient:        httpClient(),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // errors are returned
		EnableTelemetry:   new(false),
		MaxNetworkRetries: new(int64(2)), // nobody redelivers this one
	}
	if c.Address != "" {
		settings.URL = new(string(c.Address))
	}
	backend, key := stripe.GetBackendWithConfig(stripe.APIBackend, settings), c.Key.Reveal()
	return till{customer.Client{B: backend, Key: key}, paymentmethod.Client{B: backend, Key: key}}
}

// newPayer makes a customer with a card. The order's payment method has to belong to its customer, so that Stripe's test
// card, which belongs to nobody, is attached first: that makes a payment method with an id of its own
// (docs.stripe.com/testing, "Payment methods"). Name is part of the idempotency keys.
func (t till) newPayer(ctx context.Context, name string) (payer, error) {
	params := &stripe.CustomerParams{Description: new(name)}
	params.Context, params.IdempotencyKey = ctx, new(name+"/customer")
	who, err := t.customers.New(params)
	if err != nil {
		return payer{}, fmt.Errorf("make a customer at Stripe: %w", plain(err))
	}
	attach := &stripe.PaymentMethodAttachParams{Customer: &who.ID}
	attach.Context, attach.IdempotencyKey = ctx, new(name+"/method")
	method, err := t.methods.Attach("pm_card_visa", attach)
	if err != nil {
		return payer{}, fmt.Errorf("attach pm_card_visa to customer %s: %w", who.ID, plain(err))
	}
	return payer{who.ID, method.ID}, nil
}

// plain is Stripe's sentence instead of its JSON.
func plain(err error) error {
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		return err
	}
	message := fmt.Sprintf("Stripe says %d: %s", e.HTTPStatusCode, e.Msg)
	if e.HTTPStatusCode == http.StatusForbidden || e.HTTPStatusCode == http.StatusNotFound { // a restricted key; a pretend Stripe
		message += "; name a payer that is there with --customer and --method"
	}
	return errors.New(message)
}

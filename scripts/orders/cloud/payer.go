package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/customer"
	"github.com/stripe/stripe-go/v76/paymentmethod"
)

// Payers creates payers at Stripe.
type Payers struct {
	env       Env
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
	return Payers{
		env: c, customers: customer.Client{B: backend, Key: key},
		methods: paymentmethod.Client{B: backend, Key: key},
	}
}

// Create creates a customer with test cards, and returns their payment methods. The
// order's payment method must belong to its customer, and Stripe's test cards belong to
// none: attaching one creates a payment method with an id of its own
// (docs.stripe.com/testing, "Payment methods"). Name is part of the idempotency keys. The
// customer exists if its id is not "", also after an error.
func (t Payers) Create(
	ctx context.Context, name string, cards ...string,
) (id string, methods []string, err error) {
	params := &stripe.CustomerParams{Description: new(name)}
	params.Context, params.IdempotencyKey = ctx, new(name+"/customer")
	if t.env.ReceiptsTable != "" { // SES's simulator (SES developer guide, "Mailbox simulator")
		params.Email = new("success@simulator.amazonses.com")
	}
	who, err := t.customers.New(params)
	if err != nil {
		return "", nil, fmt.Errorf("create a customer at Stripe: %w", stripeMessage(err))
	}
	for _, card := range cards {
		attach := &stripe.PaymentMethodAttachParams{Customer: &who.ID}
		attach.Context, attach.IdempotencyKey = ctx, new(name+"/"+card)
		method, err := t.methods.Attach(card, attach)
		if err != nil {
			return who.ID, nil, fmt.Errorf("attach %s to customer %s: %w", card, who.ID, stripeMessage(err))
		}
		methods = append(methods, method.ID)
	}
	return who.ID, methods, nil
}

// Delete deletes a customer, for whom nothing can be charged from then on.
func (t Payers) Delete(ctx context.Context, key, id string) error {
	params := &stripe.CustomerParams{}
	params.Context, params.IdempotencyKey = ctx, &key
	if _, err := t.customers.Del(id, params); err != nil {
		return fmt.Errorf("delete customer %s at Stripe: %w", id, stripeMessage(err))
	}
	return nil
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

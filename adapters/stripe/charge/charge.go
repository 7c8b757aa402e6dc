// Package charge is order.Payments over Stripe's API: it turns an order into a
// PaymentIntent, and moves its money. It is order.Canceler too.
//
// A restricted key needs "PaymentIntents: Write" and, to explain a failed intent that was
// edited since, "Charges and Refunds: Read".
package charge

import (
	"context"
	"errors"

	stripego "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/paymentintent"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// Payments makes PaymentIntents. It is safe for concurrent use.
type Payments struct {
	client *stripe.Client
	scope  order.Scope
}

var (
	_ order.Payments = (*Payments)(nil)
	_ order.Canceler = (*Payments)(nil)
)

// New makes a Payments. Like stripe.New it sends nothing.
func New(o stripe.Options) *Payments { return &Payments{stripe.New(o), o.Scope} }

// Prepare creates an unconfirmed intent, which cannot move money yet.
//
// A release that changes a parameter must also change order.PrepareKey: Stripe refuses
// different parameters under a known idempotency key.
func (p *Payments) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	total, payment := o.Total(), o.Payment()
	params := &stripego.PaymentIntentParams{
		Amount:        stripego.Int64(total.Amount),
		Currency:      stripego.String(string(total.Currency)),
		Customer:      stripego.String(payment.Customer),
		PaymentMethod: stripego.String(payment.Method),
		CaptureMethod: stripego.String(string(stripego.PaymentIntentCaptureMethodAutomatic)),
		AutomaticPaymentMethods: &stripego.PaymentIntentAutomaticPaymentMethodsParams{
			Enabled: stripego.Bool(true),
			// Only payment methods without a page of their own: no customer is there to redirect.
			AllowRedirects: stripego.String("never"),
		},
		Metadata: map[string]string{
			stripe.MetaOrder: string(o.ID()), stripe.MetaScope: string(p.scope),
			stripe.MetaFingerprint: string(o.Fingerprint()),
		},
	}
	params.Context = ctx
	params.SetIdempotencyKey(k.String())
	call := p.client.Call("prepare order " + string(o.ID()))
	_, err := paymentintent.Client{B: call}.New(params)
	return p.current(ctx, call, err)
}

// Confirm charges the payment method that Prepare named. It names none itself, so Stripe
// refuses to confirm a declined intent, which has none any more.
func (p *Payments) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	params := &stripego.PaymentIntentConfirmParams{OffSession: stripego.Bool(true)}
	params.Context = ctx
	params.SetIdempotencyKey(k.String())
	call := p.client.IntentCall("confirm intent "+string(id), id)
	_, err := paymentintent.Client{B: call}.Confirm(string(id), params)
	return p.current(ctx, call, err)
}

// CancelIntent cancels the intent. If Stripe refuses, because it has succeeded, was
// canceled or is processing, the error shows it
// (docs.stripe.com/api/payment_intents/cancel).
func (p *Payments) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	params := &stripego.PaymentIntentCancelParams{}
	params.Context = ctx
	params.SetIdempotencyKey(k.String())
	call := p.client.IntentCall("cancel intent "+string(id), id)
	_, err := paymentintent.Client{B: call}.Cancel(string(id), params)
	return p.current(ctx, call, err)
}

// current returns the intent that a response to a write shows, in its current state.
//
// A replayed response shows the intent as it was then: the customer may have paid a
// declined one since, so current reads it again. A confirmation is replayed only if
// net/http resent the request, or if a restore from backup made the table count an
// attempt twice.
func (p *Payments) current(ctx context.Context, call *stripe.Call, err error) (order.Intent, error) {
	r, err := call.Intent(err)
	if err == nil && call.Replayed() && r.State != order.Succeeded {
		return p.Read(ctx, r.ID)
	}
	return p.explain(ctx, r, err)
}

// Read retrieves the intent. Unlike Stripe's search, a retrieval does not lag behind
// writes (docs.stripe.com/search). If the intent has failed and its last error was
// cleared, a second call reads its latest charge for the reason.
func (p *Payments) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	call := p.client.IntentCall("read intent "+string(id), id)
	r, err := call.Intent(call.Read(ctx))
	return p.explain(ctx, r, err)
}

// explain returns the intent of a result. If its last error was cleared, explain reads it
// again with its latest charge, so that a payment that needs authentication is not taken
// for a decline. The customer may have paid meanwhile.
func (p *Payments) explain(ctx context.Context, r stripe.Result, err error) (order.Intent, error) {
	if err != nil || !r.NeedsCharge {
		return r.Intent, err
	}
	call := p.client.IntentCall("read intent "+string(r.ID)+" with its latest charge", r.ID)
	call.Permission = stripe.ReadCharges
	r, err = call.Intent(call.Read(ctx, stripe.LatestCharge))
	if err == nil && r.NeedsCharge {
		err = call.Fail(order.KindMisconfigured, stripe.ErrNotExpanded)
	}
	if err != nil {
		return order.Intent{}, err
	}
	return r.Intent, nil
}

var errNotFound = errors.New("not a list of PaymentIntents")

// Find searches for the intents whose metadata name the order and this scope. Stripe's
// search lags behind writes, by up to an hour in an outage (docs.stripe.com/search), so
// Find is for orders that are older than a day.
func (p *Payments) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	// Neither an order id nor a scope can contain a quote: order.ValidID, order.NewScope.
	params := &stripego.PaymentIntentSearchParams{SearchParams: stripego.SearchParams{
		Context: ctx,
		Query: "metadata['" + stripe.MetaOrder + "']:'" + string(id) + "'" +
			" AND metadata['" + stripe.MetaScope + "']:'" + string(p.scope) + "'",
	}}
	call := p.client.Call("find intents of order " + string(id))
	err := paymentintent.Client{B: call}.Search(params).Err()
	page, err := stripe.Page(call, err, errNotFound, stripe.PaymentIntent.Order)
	return page.Data, err
}

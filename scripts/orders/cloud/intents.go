package cloud

import (
	"context"
	"errors"
	"time"

	stripego "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/paymentintent"
	"github.com/stripe/stripe-go/v76/refund"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/scripts/orders/audit"
)

// intents reads the PaymentIntents of an account, of every scope. A restricted key needs
// "PaymentIntents: Read" and "Charges and Refunds: Read".
type intents struct{ client *stripe.Client }

var errNotIntents = errors.New("not a list of PaymentIntents")

// page lists a hundred PaymentIntents that were created in the window, newest first,
// after this one if it is not "". The times count in whole seconds.
func (i intents) page(ctx context.Context, w audit.Window, after string) (stripe.List[audit.Payment], error) {
	params := &stripego.PaymentIntentListParams{CreatedRange: &stripego.RangeQueryParams{
		GreaterThanOrEqual: w.From.Unix(), LesserThan: w.To.Unix(),
	}}
	params.Context = ctx
	params.Limit = stripego.Int64(stripe.PageSize)
	params.AddExpand("data." + stripe.LatestCharge)
	if after != "" {
		params.StartingAfter = stripego.String(after)
	}
	call := i.client.Call("list intents")
	call.Permission = stripe.ReadCharges
	err := paymentintent.Client{B: call}.List(params).Err()
	return stripe.Page(call, err, errNotIntents, payment)
}

// refunded is a refund with its PaymentIntent; one of another charge has none.
type refunded struct {
	ID     string                `json:"id"`
	Intent *stripe.PaymentIntent `json:"payment_intent"`
	of     audit.Payment
}

// refunds lists a hundred refunds that were made in the window, newest first, after this
// one if it is not "", whenever their PaymentIntents were created.
func (i intents) refunds(ctx context.Context, w audit.Window, after string) (stripe.List[refunded], error) {
	params := &stripego.RefundListParams{CreatedRange: &stripego.RangeQueryParams{
		GreaterThanOrEqual: w.From.Unix(), LesserThan: w.To.Unix(),
	}}
	params.Context = ctx
	params.Limit = stripego.Int64(stripe.PageSize)
	params.AddExpand("data.payment_intent." + stripe.LatestCharge)
	if after != "" {
		params.StartingAfter = stripego.String(after)
	}
	call := i.client.Call("list refunds")
	call.Permission = stripe.ReadCharges
	err := refund.Client{B: call}.List(params).Err()
	return stripe.Page(call, err, errNotIntents, func(r refunded) (refunded, error) {
		if r.Intent == nil || r.ID == "" {
			return r, nil
		}
		var err error
		r.of, err = payment(*r.Intent)
		return r, err
	})
}

// read returns one PaymentIntent in its current state.
func (i intents) read(ctx context.Context, id order.IntentID) (audit.Payment, error) {
	call := i.client.IntentCall("read intent "+string(id)+" with its latest charge", id)
	call.Permission = stripe.ReadCharges
	err := call.Read(ctx, stripe.LatestCharge)
	return stripe.Object(call, err, errNotIntents, func(i stripe.PaymentIntent) (audit.Payment, error) {
		if p, err := payment(i); err != nil || p.ID == id {
			return p, err
		}
		return audit.Payment{}, stripe.ErrOtherIntent
	})
}

// payment converts an intent whose latest charge was to be expanded.
func payment(i stripe.PaymentIntent) (audit.Payment, error) {
	charge := i.LatestCharge
	if charge.Named && charge.Object == nil {
		return audit.Payment{}, stripe.ErrNotExpanded
	}
	intent, err := i.Order()
	if err != nil {
		return audit.Payment{}, err
	}
	p := audit.Payment{Intent: intent, CreatedAt: time.Unix(i.Created, 0).UTC()}
	if charge.Object != nil {
		p.Refunded, p.Disputed = charge.Object.Refunded, charge.Object.Disputed
	}
	return p, nil
}

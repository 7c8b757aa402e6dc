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

// listed is a PaymentIntent with the id by which the list goes on.
type listed struct {
	id string

	audit.Payment
}

// hundred asks for a hundred objects that were created in the window, after this one if
// it is not "", each with an expanded field.
func hundred(
	ctx context.Context, w audit.Window, after, expanded string,
) (*stripego.RangeQueryParams, stripego.ListParams) {
	list := stripego.ListParams{Context: ctx, Limit: stripego.Int64(stripe.PageSize)}
	list.AddExpand(expanded)
	if after != "" {
		list.StartingAfter = stripego.String(after)
	}
	return &stripego.RangeQueryParams{GreaterThanOrEqual: w.From.Unix(), LesserThan: w.To.Unix()}, list
}

// page lists a hundred PaymentIntents that were created in the window, newest first,
// after this one if it is not "". The times count in whole seconds.
func (i intents) page(ctx context.Context, w audit.Window, after string) (stripe.List[listed], error) {
	created, list := hundred(ctx, w, after, "data."+stripe.LatestCharge)
	params := &stripego.PaymentIntentListParams{CreatedRange: created, ListParams: list}
	call := i.client.Call("list intents")
	call.Permission = stripe.ReadCharges
	err := paymentintent.Client{B: call}.List(params).Err()
	return stripe.Page(call, err, errNotIntents, func(i stripe.PaymentIntent) (listed, error) {
		p, err := payment(i)
		return listed{string(p.ID), p}, err
	})
}

// refunds lists a hundred refunds that were made in the window, newest first, after this
// one if it is not "", whenever their PaymentIntents were created.
func (i intents) refunds(ctx context.Context, w audit.Window, after string) (stripe.List[listed], error) {
	created, list := hundred(ctx, w, after, "data.payment_intent."+stripe.LatestCharge)
	params := &stripego.RefundListParams{CreatedRange: created, ListParams: list}
	call := i.client.Call("list refunds")
	call.Permission = stripe.ReadCharges
	err := refund.Client{B: call}.List(params).Err()
	type object struct {
		ID     string                `json:"id"`
		Intent *stripe.PaymentIntent `json:"payment_intent"` // nil: of a charge without one
	}
	return stripe.Page(call, err, errNotIntents, func(o object) (l listed, err error) {
		if l.id = o.ID; l.id == "" { // it would look like the end of the list
			return l, errNotIntents
		}
		if o.Intent != nil {
			l.Payment, err = payment(*o.Intent)
		}
		return l, err
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

// Package audit lists every PaymentIntent of an account, to compare it with the table. A
// restricted key needs "PaymentIntents: Read" and "Charges and Refunds: Read".
package audit

import (
	"context"
	"errors"
	"iter"
	"time"

	stripego "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/paymentintent"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// Account reads the PaymentIntents of an account. It is safe for concurrent use.
type Account struct{ client *stripe.Client }

// New makes an Account. Like stripe.New it sends nothing.
func New(o stripe.Options) *Account { return &Account{stripe.New(o)} }

// Listed is a PaymentIntent with its latest charge. State is "" if this application never
// causes the intent's status, such as that of a manual capture.
type Listed struct {
	order.Intent

	CreatedAt time.Time
	Refunded  int64 // of the latest charge, pending refunds too, in the units of Total
	Disputed  bool  // the latest charge was disputed, whatever came of it
}

// List lists every PaymentIntent of the account that was created in [from, to), of every
// scope, newest first, in pages of a hundred with one call each. after is "", or the last
// intent of a page with which an earlier List ended. The times count in whole seconds.
//
// It ends at the first error, an *order.PaymentError: Unavailable and Unknown are worth
// another List after the last page.
func (a *Account) List(
	ctx context.Context, from, to time.Time, after order.IntentID,
) iter.Seq2[[]Listed, error] {
	return func(yield func([]Listed, error) bool) {
		for {
			page, err := a.page(ctx, from, to, after)
			if !yield(page.Data, err) || !page.More {
				return
			}
			after = page.Data[len(page.Data)-1].ID
		}
	}
}

var errNotIntents = errors.New("not a list of PaymentIntents")

// page reads one page. Four levels may be expanded, and the charge is at the second
// (docs.stripe.com/expand).
func (a *Account) page(
	ctx context.Context, from, to time.Time, after order.IntentID,
) (stripe.List[Listed], error) {
	params := &stripego.PaymentIntentListParams{CreatedRange: &stripego.RangeQueryParams{
		GreaterThanOrEqual: from.Unix(), LesserThan: to.Unix(),
	}}
	params.Context = ctx
	params.Limit = stripego.Int64(stripe.PageSize)
	params.AddExpand("data." + stripe.LatestCharge)
	if after != "" {
		params.StartingAfter = stripego.String(string(after))
	}
	call := a.client.Call("list intents")
	call.Permission = stripe.ReadCharges
	err := paymentintent.Client{B: call}.List(params).Err()
	return stripe.Page(call, err, errNotIntents, listed)
}

// Read returns one PaymentIntent as List does, in its current state. Its errors are those
// of charge.Payments.Read.
func (a *Account) Read(ctx context.Context, id order.IntentID) (Listed, error) {
	call := a.client.IntentCall("read intent "+string(id)+" with its latest charge", id)
	call.Permission = stripe.ReadCharges
	err := call.Read(ctx, stripe.LatestCharge)
	return stripe.Object(call, err, errNotIntents, func(i stripe.PaymentIntent) (Listed, error) {
		if l, err := listed(i); err != nil || l.ID == id {
			return l, err
		}
		return Listed{}, stripe.ErrOtherIntent
	})
}

// listed converts an intent whose latest charge was to be expanded.
func listed(i stripe.PaymentIntent) (Listed, error) {
	charge := i.LatestCharge
	if charge.Named && charge.Object == nil {
		return Listed{}, stripe.ErrNotExpanded
	}
	intent, err := i.Order()
	if err != nil {
		return Listed{}, err
	}
	l := Listed{Intent: intent, CreatedAt: time.Unix(i.Created, 0).UTC()}
	if charge.Object != nil {
		l.Refunded, l.Disputed = charge.Object.Refunded, charge.Object.Disputed
	}
	return l, nil
}

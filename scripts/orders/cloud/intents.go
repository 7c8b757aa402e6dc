package cloud

import (
	"context"
	"errors"
	"time"

	stripego "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/scripts/orders/audit"
)

// intents reads the PaymentIntents of an account, of every scope. A restricted key needs
// "PaymentIntents: Read" and "Charges and Refunds: Read".
type intents struct{ client *stripe.Client }

var (
	errNotIntent = errors.New("not a PaymentIntent")
	errNotList   = errors.New("not a list of Stripe's objects")
)

// list lists a hundred of an account's objects that were created in the window, newest
// first, after this one if it is not "", each with an expanded field. The times count in
// whole seconds. convert returns the id by which the list goes on, and the item.
func list[O, T any](
	ctx context.Context, c *stripe.Client, of string, w audit.Window, after, expanded string,
	convert func(O) (id string, item T, err error),
) (page audit.Page[T], err error) {
	params := stripego.ListParams{Context: ctx, Limit: stripego.Int64(stripe.PageSize)}
	params.AddExpand(expanded)
	if after != "" {
		params.StartingAfter = stripego.String(after)
	}
	created := &stripego.RangeQueryParams{GreaterThanOrEqual: w.From.Unix(), LesserThan: w.To.Unix()}
	body, call := new(form.Values), c.Call("list "+of)
	form.AppendTo(body, &stripego.PaymentIntentListParams{CreatedRange: created, ListParams: params})
	call.Permission = stripe.ReadCharges
	if of == "disputes" {
		call.Permission = "Disputes: Read"
	}
	err = call.CallRaw("GET", "/v1/"+of, "", body, params.GetParams(), nil)
	found, err := stripe.Page(call, err, errNotList, func(o O) (item T, err error) {
		if page.Next, item, err = convert(o); err == nil && page.Next == "" {
			err = errNotList // it would look like the end of the list
		}
		return item, err
	})
	if page.Items = found.Data; !found.More {
		page.Next = ""
	}
	return page, err
}

func (i intents) page(ctx context.Context, w audit.Window, after string) (audit.Page[audit.Payment], error) {
	return list(ctx, i.client, "payment_intents", w, after, "data."+stripe.LatestCharge,
		func(i stripe.PaymentIntent) (string, audit.Payment, error) {
			p, err := payment(i)
			return string(p.ID), p, err
		})
}

// refunds lists refunds, with their PaymentIntents, whenever those were created.
func (i intents) refunds(
	ctx context.Context, w audit.Window, after string,
) (audit.Page[audit.Payment], error) {
	type object struct {
		ID     string                `json:"id"`
		Intent *stripe.PaymentIntent `json:"payment_intent"` // nil: of a charge without one
	}
	return list(ctx, i.client, "refunds", w, after, "data.payment_intent."+stripe.LatestCharge,
		func(o object) (id string, p audit.Payment, err error) {
			if o.Intent != nil {
				p, err = payment(*o.Intent)
			}
			return o.ID, p, err
		})
}

func (i intents) read(ctx context.Context, id order.IntentID) (audit.Payment, error) {
	call := i.client.IntentCall("read intent "+string(id)+" with its latest charge", id)
	call.Permission = stripe.ReadCharges
	err := call.Read(ctx, stripe.LatestCharge)
	return stripe.Object(call, err, errNotIntent, func(i stripe.PaymentIntent) (audit.Payment, error) {
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

// Package payer is receipt.Payers over Stripe's API: the e-mail address of who paid. A
// restricted key needs "PaymentIntents: Read" and "Customers: Read".
package payer

import (
	"context"
	"encoding/json"
	"errors"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// Payers reads who paid. It is safe for concurrent use.
type Payers struct{ client *stripe.Client }

var _ receipt.Payers = (*Payers)(nil)

// New makes a Payers. Like stripe.New it sends nothing.
func New(o stripe.Options) *Payers { return &Payers{stripe.New(o)} }

var (
	errNotPayer    = errors.New("response without the PaymentIntent's customer")
	errNotExpanded = errors.New("customer not expanded: got only its id")
)

// response is an intent with its customer, as far as it is read.
type response struct {
	ID       order.IntentID  `json:"id"`
	Customer json.RawMessage `json:"customer"`
}

// payer is the customer. One who was deleted has no address.
type payer = stripe.Expandable[struct {
	Email   string   `json:"email"`
	Locales []string `json:"preferred_locales"`
}]

// Payer reads the intent with its customer. One without an address, or who was deleted,
// is receipt.ErrNoAddress.
func (p *Payers) Payer(ctx context.Context, id order.IntentID) (receipt.Payer, error) {
	call := p.client.IntentCall("read intent "+string(id)+" with its customer", id)
	call.Permission = "Customers: Read"
	c, err := stripe.Object(call, call.Read(ctx, "customer"), errNotPayer, func(r response) (c payer, _ error) {
		switch {
		case r.ID != id:
			return c, stripe.ErrOtherIntent
		case json.Unmarshal(r.Customer, &c) != nil: // also without the field
			return c, errNotPayer
		}
		return c, nil
	})
	switch {
	case err != nil:
		return receipt.Payer{}, err
	case c.Object == nil && c.Named:
		return receipt.Payer{}, call.Fail(order.KindMisconfigured, errNotExpanded)
	case c.Object == nil:
		return receipt.Payer{}, receipt.ErrNoAddress
	}
	address, err := receipt.NewAddress(c.Object.Email)
	if err != nil {
		return receipt.Payer{}, err
	}
	return receipt.Payer{Address: address, Locales: c.Object.Locales}, nil
}

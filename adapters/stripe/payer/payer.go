// Package payer is receipt.Payers over Stripe's API: the e-mail address of who paid. A
// restricted key needs "PaymentIntents: Read" and "Customers: Read".
package payer

import (
	"bytes"
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

// Payer reads the intent with its customer, in one request. A customer without an
// address, or who was deleted, is receipt.ErrNoAddress.
func (p *Payers) Payer(ctx context.Context, id order.IntentID) (receipt.Payer, error) {
	call := p.client.IntentCall("read intent "+string(id)+" with its customer", id)
	call.Permission = "Customers: Read"
	if err := call.Read(ctx, "customer"); err != nil {
		return receipt.Payer{}, err
	}
	var object struct {
		ID       order.IntentID  `json:"id"`
		Customer json.RawMessage `json:"customer"`
	}
	if err := call.Decode(&object, errNotPayer); err != nil {
		return receipt.Payer{}, err
	}
	switch {
	case object.ID != id:
		return receipt.Payer{}, call.Fail(order.KindUnknown, stripe.ErrOtherIntent)
	case len(object.Customer) == 0:
		return receipt.Payer{}, call.Fail(order.KindUnknown, errNotPayer)
	case bytes.HasPrefix(object.Customer, []byte(`"`)):
		return receipt.Payer{}, call.Fail(order.KindMisconfigured, errNotExpanded)
	}
	var customer struct { // null and a deleted customer have no address
		Email   string   `json:"email"`
		Locales []string `json:"preferred_locales"`
	}
	if json.Unmarshal(object.Customer, &customer) != nil {
		return receipt.Payer{}, call.Fail(order.KindUnknown, errNotPayer)
	}
	address, err := receipt.NewAddress(customer.Email)
	if err != nil {
		return receipt.Payer{}, err
	}
	return receipt.Payer{Address: address, Locales: customer.Locales}, nil
}

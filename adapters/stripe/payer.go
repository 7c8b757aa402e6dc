package stripe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

var _ receipt.Payers = (*Payments)(nil)

// customerField is the field of a PaymentIntent that holds its Customer.
const customerField = "customer"

var (
	errNotPayer            = errors.New("response without the PaymentIntent's customer")
	errNotExpandedCustomer = errors.New("customer not expanded: got only its id")
)

// Payer reads the intent with its customer, in one request. It needs the permissions
// "PaymentIntents: Read" and "Customers: Read". A customer without an address, or who was
// deleted, is receipt.ErrNoAddress.
func (p *Payments) Payer(ctx context.Context, id order.IntentID) (receipt.Payer, error) {
	c := readCall(id)
	c.name += " with its customer"
	c.Params = url.Values{"expand[]": {customerField}}
	response, err := p.send(ctx, &c)
	if err != nil {
		return receipt.Payer{}, err
	}
	return c.classifyPayer(response)
}

// classifyPayer is classify for an intent with its customer.
func (c call) classifyPayer(p parsed) (receipt.Payer, error) {
	var object struct {
		ID       order.IntentID  `json:"id"`
		Customer json.RawMessage `json:"customer"`
	}
	if err := c.decode(p, &object, errNotPayer); err != nil {
		return receipt.Payer{}, err
	}
	switch {
	case object.ID != c.intent:
		return receipt.Payer{}, c.fail(order.KindUnknown, p, errOtherIntent)
	case len(object.Customer) == 0:
		return receipt.Payer{}, c.fail(order.KindUnknown, p, errNotPayer)
	case bytes.HasPrefix(object.Customer, []byte(`"`)):
		return receipt.Payer{}, c.fail(order.KindMisconfigured, p, errNotExpandedCustomer)
	}
	var customer struct { // null and a deleted customer have no address
		Email   string   `json:"email"`
		Locales []string `json:"preferred_locales"`
	}
	if json.Unmarshal(object.Customer, &customer) != nil {
		return receipt.Payer{}, c.fail(order.KindUnknown, p, errNotPayer)
	}
	address, err := receipt.NewAddress(customer.Email)
	if err != nil {
		return receipt.Payer{}, err
	}
	return receipt.Payer{Address: address, Locales: customer.Locales}, nil
}

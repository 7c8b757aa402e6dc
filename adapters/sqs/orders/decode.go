// Package orders reads orders from messages, sends them, and makes tasks of them. It
// decides nothing about an order.
package orders

import (
	"errors"
	"slices"

	"orderonce/adapters/internal/strictjson"
	"orderonce/adapters/sqs/internal/decode"
	"orderonce/domain/order"
)

// message is an order in JSON. Numbers are pointers, because a missing price is not a
// price of zero.
type message struct {
	Type       *string `json:"type,omitempty" null:"refused"`
	OrderID    *string `json:"orderId" null:"refused"`
	CustomerID string  `json:"customerId"`
	Currency   string  `json:"currency"`
	Lines      []line  `json:"lines"      validate:"dive"`
	Payment    payment `json:"payment"`
}

type line struct {
	SKU        string `json:"sku"`
	Quantity   *int64 `json:"quantity"   validate:"required"`
	UnitAmount *int64 `json:"unitAmount" validate:"required"`
}

type payment struct {
	Customer string `json:"customer"`
	Method   string `json:"method"`
}

// Type is the "type" of an order's message. A message without a type is an order too.
const Type = "order"

// Kind implements decode.Message.
func (m message) Kind() string {
	if m.Type == nil {
		return Type
	}
	return *m.Type
}

// Domain implements decode.Message.
func (m message) Domain() (order.Order, error) {
	lines := make([]order.Line, len(m.Lines))
	for i, l := range m.Lines {
		lines[i] = order.Line{
			SKU: l.SKU, Quantity: decode.Number(l.Quantity), UnitAmount: decode.Number(l.UnitAmount),
		}
	}
	draft := order.Draft{
		CustomerID: m.CustomerID, Currency: m.Currency, Lines: lines,
		Payment: order.Payment{Customer: m.Payment.Customer, Method: m.Payment.Method},
	}
	if m.OrderID != nil {
		draft.ID = *m.OrderID
	}
	return order.New(draft)
}

// ErrRefund is the error of Decode for a refund.
var ErrRefund error = &strictjson.Error{Problem: `type: want "order"; send refunds to the refund queue`}

func otherKind(kind string) error {
	if kind == "refund" {
		return ErrRefund
	}
	return &strictjson.Error{Problem: `type: want "order"`, Newer: true}
}

// Decoder decodes and validates orders in JSON. It is safe for concurrent use, and
// expensive to create, so share one.
type Decoder struct {
	*decode.Decoder[message, order.Order]
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return &Decoder{decode.New[message](Type, otherKind)} }

// DecodeNamed decodes an order whose id is known, for example from a URL. The rules are
// those of a message, but for two: the order may lack an orderId, and its orderId may be
// no other; it is not wrapped. The errors are those of Decode.
func (d *Decoder) DecodeNamed(body, id string) (order.Order, error) {
	m, err := d.Read([]byte(body))
	if err != nil {
		return order.Order{}, err
	}
	got := id
	if m.OrderID != nil {
		got = *m.OrderID
	}
	m.OrderID = &id
	o, err := d.Of(m)
	if got != id {
		return order.Order{}, otherID(got, err)
	}
	return o, err
}

// otherID returns err, with the problem that the order has another id than expected.
func otherID(got string, err error) error {
	all := []order.Problem{{Field: "orderId", Value: order.Quote(got), Want: "the id of the request, or none"}}
	if invalid, ok := errors.AsType[*order.InvalidError](err); ok {
		all = slices.Concat(all, slices.DeleteFunc(invalid.Problems, func(p order.Problem) bool {
			return p.Field == "orderId" // one problem of it is enough
		}))
	}
	return &order.InvalidError{Of: Type, Problems: all}
}

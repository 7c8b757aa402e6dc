// Package orders reads orders from messages, and makes tasks of them. It decides nothing
// about an order.
package orders

import (
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

// Decoder decodes and validates orders in JSON.
type Decoder = decode.Decoder[message, order.Order]

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return decode.New[message](Type, otherKind) }

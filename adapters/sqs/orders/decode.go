// Package orders reads orders from messages, sends them, and makes tasks of them. It
// decides nothing about an order.
package orders

import (
	"cmp"
	"errors"
	"slices"

	"orderonce/adapters/internal/strictjson"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/internal/validate"
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

// Decoder decodes and validates orders in JSON. It is safe for concurrent use, and
// expensive to create, so share one.
type Decoder struct {
	json     strictjson.Decoder[message]
	validate validate.Validator
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return &Decoder{strictjson.New[message](), validate.New()} }

// Decode decodes an order, which EventBridge or SNS may have wrapped. It returns an
// error of Parse.
func (d *Decoder) Decode(body string) (order.Order, error) {
	raw, err := sqs.Unwrap(body)
	if err != nil {
		return order.Order{}, err
	}
	return d.Parse(raw)
}

// Parse decodes an order that is not wrapped. It returns a body error, which says what
// is wrong with the JSON, or an *order.InvalidError. Both name fields. They contain no
// more of the body than order.Quote allows, and nothing of fields with personal or
// payment data.
func (d *Decoder) Parse(raw []byte) (order.Order, error) {
	m, err := d.parse(raw)
	if err != nil {
		return order.Order{}, err
	}
	return d.order(m)
}

// DecodeNamed decodes an order whose id is known, for example from a URL. The rules are
// those of a message, but for two: the order may lack an orderId, and its orderId may be
// no other; it is not wrapped. The errors are those of Parse.
func (d *Decoder) DecodeNamed(body, id string) (order.Order, error) {
	m, err := d.parse([]byte(body))
	if err != nil {
		return order.Order{}, err
	}
	got := id
	if m.OrderID != nil {
		got = *m.OrderID
	}
	m.OrderID = &id
	o, err := d.order(m)
	if got != id {
		return order.Order{}, otherID(got, err)
	}
	return o, err
}

func (d *Decoder) parse(raw []byte) (message, error) {
	m, err := d.json.Decode(raw)
	kind := Type
	if err != nil {
		kind = cmp.Or(strictjson.Member(raw, "type"), Type) // a refund has unknown fields
	} else if m.Type != nil {
		kind = *m.Type
	}
	switch kind {
	case Type:
		return m, err
	case "refund":
		return message{}, ErrRefund
	}
	return message{}, errType
}

// ErrRefund is the error of Parse for a refund.
var ErrRefund error = &strictjson.Error{Problem: `type: want "order"; send refunds to the refund queue`}

var errType = &strictjson.Error{Problem: `type: want "order"`}

func (d *Decoder) order(m message) (order.Order, error) {
	lines := make([]order.Line, len(m.Lines))
	for i, l := range m.Lines {
		lines[i] = order.Line{SKU: l.SKU, Quantity: number(l.Quantity), UnitAmount: number(l.UnitAmount)}
	}
	draft := order.Draft{
		CustomerID: m.CustomerID, Currency: m.Currency, Lines: lines,
		Payment: order.Payment{Customer: m.Payment.Customer, Method: m.Payment.Method},
	}
	if m.OrderID != nil {
		draft.ID = *m.OrderID
	}
	o, err := order.New(draft)
	if err = d.validate.Message("order", m, err); err != nil {
		return order.Order{}, err
	}
	return o, nil
}

// number returns a number, or one that is not valid if it is missing.
func number(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// otherID returns err, with the problem that the order has another id than expected.
func otherID(got string, err error) error {
	all := []order.Problem{{Field: "orderId", Value: order.Quote(got), Want: "the id of the request, or none"}}
	if invalid, ok := errors.AsType[*order.InvalidError](err); ok {
		all = slices.Concat(all, slices.DeleteFunc(invalid.Problems, func(p order.Problem) bool {
			return p.Field == "orderId" // one problem of it is enough
		}))
	}
	return &order.InvalidError{Of: "order", Problems: all}
}

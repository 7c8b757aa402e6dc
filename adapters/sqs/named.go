package sqs

import (
	"encoding/json"
	"errors"
	"slices"

	"orderonce/domain/order"
)

// DecodeNamed decodes and validates an order whose id is known, for example from a URL.
// The rules are those of a message, but for three: the order may lack an orderId, and its
// orderId may be no other; it is not wrapped; it is not a refund. The errors are those of
// Decode.
func (d *Decoder) DecodeNamed(body, id string) (order.Order, error) {
	raw := []byte(body)
	if err := checkSize(body); err != nil {
		return order.Order{}, err
	}
	fields := orderFields
	switch string(typeOf(raw)) {
	case "":
	case `"order"`:
		fields = typedOrderFields
	default:
		return order.Order{}, &BodyError{`type: want "order"`}
	}
	m, err := unmarshal[message](raw, fields)
	if err != nil {
		return order.Order{}, err
	}
	if !namesOrder(raw) {
		m.OrderID = id
	}
	if err := withoutOtherID(m.OrderID, id, d.check(m)); err != nil {
		return order.Order{}, err
	}
	return order.New(m.draft())
}

// namesOrder reports whether an order has the field orderId.
func namesOrder(raw []byte) bool {
	var m struct {
		OrderID json.RawMessage `json:"orderId"`
	}
	return json.Unmarshal(raw, &m) == nil && m.OrderID != nil
}

// withoutOtherID returns err, with the problem that the order has another id than
// expected.
func withoutOtherID(got, want string, err error) error {
	if got == want {
		return err
	}
	all := []order.Problem{{Field: "orderId", Value: order.Quote(got), Want: "the id of the request, or none"}}
	if invalid, ok := errors.AsType[*order.InvalidError](err); ok {
		all = slices.Concat(all, slices.DeleteFunc(invalid.Problems, func(p order.Problem) bool {
			return p.Field == "orderId" // one problem of it is enough
		}))
	}
	return &order.InvalidError{Of: "order", Problems: all}
}

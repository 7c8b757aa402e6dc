package sqs

import (
	"bytes"
	"encoding/json"
	"errors"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Job is what a message asks for: to charge an order or, if Refund has an id, to give
// back money of one.
type Job struct {
	Order  order.Order
	Refund refund.Request
}

// IsRefund reports whether the job is a refund.
func (j Job) IsRefund() bool { return j.Refund.ID() != "" }

// OrderID returns the order that is charged or refunded, or "" of the zero Job.
func (j Job) OrderID() order.ID {
	if j.IsRefund() {
		return j.Refund.OrderID()
	}
	return j.Order.ID()
}

// refundMessage is a refund in JSON. Amount is a pointer, because a missing amount is not
// an amount of zero.
type refundMessage struct {
	Type     string  `json:"type"` // DecodeJob compared it
	OrderID  string  `json:"orderId"  validate:"order_id"`
	RefundID string  `json:"refundId" validate:"order_id"`
	Amount   *int64  `json:"amount"   validate:"required,refund_amount"`
	Currency *string `json:"currency" validate:"omitempty,currency"`
	Reason   string  `json:"reason"   validate:"refund_reason"`
}

// refundFields returns the allowed fields of the object at a path.
func refundFields(path string) []string {
	if path == "" {
		return []string{"type", "orderId", "refundId", "amount", "currency", "reason"}
	}
	return nil
}

// typedOrderFields returns the allowed fields of an order that names its type.
func typedOrderFields(path string) []string {
	if path == "" {
		return append(orderFields(path), "type")
	}
	return orderFields(path)
}

// typeOf returns the field "type" of an unwrapped body, or nil if the body has none or is
// not a JSON object. A body without the word is not parsed, which would cost time.
func typeOf(raw []byte) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"type"`)) {
		return nil
	}
	var m struct {
		Type json.RawMessage `json:"type"`
	}
	_ = json.Unmarshal(raw, &m) // parse reports what is wrong with the body
	return m.Type
}

// DecodeJob decodes one message body, which EventBridge or SNS may have wrapped: a refund
// if its type is "refund", or an order. Its errors are those of Decode.
func (d *Decoder) DecodeJob(body string) (j Job, err error) {
	raw, err := unwrap(body)
	if err != nil {
		return Job{}, err
	}
	switch string(typeOf(raw)) {
	case "":
		j.Order, err = d.order(raw, orderFields)
	case `"order"`:
		j.Order, err = d.order(raw, typedOrderFields)
	case `"refund"`:
		j.Refund, err = d.refund(raw)
	default:
		err = &BodyError{`type: want "order" or "refund"`}
	}
	return j, err
}

func (d *Decoder) refund(raw []byte) (refund.Request, error) {
	m, err := parse[refundMessage](d, raw, refundFields)
	if invalid, ok := errors.AsType[*order.InvalidError](err); ok {
		invalid.Of = "refund"
	}
	if err != nil {
		return refund.Request{}, err
	}
	draft := refund.Draft{OrderID: m.OrderID, RefundID: m.RefundID, Amount: *m.Amount, Reason: m.Reason}
	if m.Currency != nil {
		draft.Currency = *m.Currency
	}
	return refund.New(draft)
}

// Package jobs reads and writes the messages of every queue, for programs that people
// run. Each function reads one kind.
package jobs

import (
	"encoding/json"
	"errors"

	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/refunds"
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

// OrderID returns the order that the job is about, or "" of the zero Job.
func (j Job) OrderID() order.ID {
	if j.IsRefund() {
		return j.Refund.OrderID()
	}
	return j.Order.ID()
}

// Decoder decodes jobs. It is safe for concurrent use, and expensive to create, so share
// one.
type Decoder struct {
	orders  *orders.Decoder
	refunds *refunds.Decoder
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return &Decoder{orders.NewDecoder(), refunds.NewDecoder()} }

// Decode decodes a message as the function of its queue does: a refund if its type is
// "refund", or an order. Its errors are those of the decoders of both.
func (d *Decoder) Decode(body string) (j Job, err error) {
	if j.Order, err = d.orders.Decode(body); errors.Is(err, orders.ErrRefund) {
		j.Refund, err = d.refunds.Decode(body)
	}
	return j, err
}

// RefundBody returns the message of a refund.
func RefundBody(r refund.Request) string {
	body, _ := json.Marshal(map[string]any{ // only strings and a number
		"type": refunds.Type, "orderId": r.OrderID(), "refundId": r.ID(), "amount": r.Amount(), "reason": r.Reason(),
	})
	return string(body)
}

// Package jobs reads messages that are orders or refunds, for a queue of both and for
// tools.
package jobs

import (
	"bytes"
	"slices"

	"orderonce/adapters/internal/strictjson"
	"orderonce/adapters/sqs"
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

// OrderID returns the order that is charged or refunded, or "" of the zero Job.
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
	fields  []string
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder {
	o, r := orders.NewDecoder(), refunds.NewDecoder()
	return &Decoder{o, r, slices.Concat(o.Fields(), r.Fields())}
}

// Decode decodes a message body, which EventBridge or SNS may have wrapped: a refund if
// its type is "refund", or an order. Its errors are those of the decoders of both.
func (d *Decoder) Decode(body string) (j Job, err error) {
	raw, err := sqs.Unwrap(body, d.fields)
	if err != nil {
		return Job{}, err
	}
	switch typeOf(raw) {
	case "", orders.Type:
		j.Order, err = d.orders.Parse(raw)
	case refunds.Type:
		j.Refund, err = d.refunds.Parse(raw)
	default:
		err = &strictjson.Error{Problem: `type: want "order" or "refund"`}
	}
	return j, err
}

// typeOf returns the type of a message. A body without the word is not read for it.
func typeOf(raw []byte) string {
	if !bytes.Contains(raw, []byte(`"type"`)) {
		return ""
	}
	return strictjson.Member(raw, "type")
}

// Tasks turns messages of a queue of both into tasks. All fields are required.
type Tasks struct {
	Decoder *Decoder
	Orders  orders.Tasks
	Refunds refunds.Tasks
}

// Task implements sqs.Handler.Decode.
func (t Tasks) Task(body string) (sqs.Task, error) {
	job, err := t.Decoder.Decode(body)
	switch {
	case err != nil:
		return sqs.Task{}, err
	case job.IsRefund():
		return t.Refunds.Of(job.Refund), nil
	}
	return t.Orders.Of(job.Order), nil
}

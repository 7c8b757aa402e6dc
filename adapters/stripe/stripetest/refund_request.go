package stripetest

import (
	"fmt"
	"strconv"
	"strings"
)

// refundsRoot is the path of refunds.
const refundsRoot = "/v1/refunds"

// routeRefund finds the endpoint of a request whose path is that of refunds.
func (m *Machine) routeRefund(c *call) {
	id, below := strings.CutPrefix(c.Path, refundsRoot+"/")
	switch {
	case c.Method == post && !below:
		c.endpoint, c.intent = CreateRefund, c.Form.Get("payment_intent")
	case c.Method == get && !below:
		c.endpoint = ListRefunds
	case c.Method == get && !strings.Contains(id, "/"):
		c.endpoint, c.refund.ID = ReadRefund, id
	}
	if intent := m.Intent(c.Form.Get("payment_intent")); intent != nil {
		c.orderID = intent.OrderID()
	}
	if r := find(m.refunds, c.account(), c.refund.ID); r != nil {
		c.orderID = r.Metadata["orderId"]
	}
}

// validateRefund checks the parameters of docs.stripe.com/api/refunds. A refund by its
// charge is not modeled.
func (m *Machine) validateRefund(c *call) *Response {
	if c.endpoint == CreateRefund {
		return m.validateNewRefund(c)
	}
	if denied := c.permit(m.rules.NoCharges, "rak_charge_read"); denied != nil {
		return denied
	}
	if c.endpoint == ListRefunds {
		return readObjects(m, c, m.refunds, "refund")
	}
	if find(m.refunds, c.account(), c.refund.ID) == nil {
		return refusal(404, Error{
			Type: "invalid_request_error", Code: "resource_missing", Param: "id",
			Message: fmt.Sprintf("No such refund: '%s'", c.refund.ID),
		})
	}
	return nil
}

func (m *Machine) validateNewRefund(c *call) *Response {
	c.refund = Refund{Reason: c.Form.Get("reason"), Metadata: mapOf(c.Form, "metadata[")}
	if c.Form.Get("payment_intent") == "" {
		return invalid("parameter_missing", "payment_intent", "Missing required param: payment_intent.")
	}
	if c.Form.Has("amount") {
		amount, err := strconv.ParseInt(c.Form.Get("amount"), 10, 64)
		if err != nil || amount < 1 {
			return invalid("parameter_invalid_integer", "amount", "Invalid positive integer")
		}
		c.refund.Amount = amount
	}
	return first([]*Response{
		c.permit(m.rules.NoRefunds, "rak_charge_write"), checkMetadata(c.refund.Metadata),
		oneOf(c.Form, "reason", "duplicate", "fraudulent", "requested_by_customer"),
	})
}

// refundJSON is a refund, as far as it is modeled (docs.stripe.com/api/refunds/object).
type refundJSON struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        string            `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	FailureReason *string           `json:"failure_reason,omitempty"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent string            `json:"payment_intent"`
	Reason        *string           `json:"reason"`
	Status        *string           `json:"status"`
}

func wireRefund(r *Refund) *refundJSON {
	wire := &refundJSON{
		ID: r.ID, Object: "refund", Amount: r.Amount, Charge: r.Charge, Created: r.Created.Unix(),
		Currency: r.Currency, FailureReason: orNull(r.Failure), Metadata: r.Metadata, PaymentIntent: r.Intent,
		Reason: orNull(r.Reason), Status: orNull(string(r.Status)),
	}
	if wire.Metadata == nil {
		wire.Metadata = map[string]string{}
	}
	return wire
}

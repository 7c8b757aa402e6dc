package jobs

import (
	"encoding/json"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

type orderBody struct {
	OrderID    string     `json:"orderId"`
	CustomerID string     `json:"customerId"`
	Currency   string     `json:"currency"`
	Lines      []lineBody `json:"lines"`
	Payment    payerBody  `json:"payment"`
}

type lineBody struct {
	SKU        string `json:"sku"`
	Quantity   int64  `json:"quantity"`
	UnitAmount int64  `json:"unitAmount"`
}

type payerBody struct {
	Customer string `json:"customer"`
	Method   string `json:"method"`
}

// OrderBody returns the message of an order, which may be invalid, with its fields in the
// order of docs/reference/message.md.
func OrderBody(d order.Draft) string {
	lines := make([]lineBody, len(d.Lines))
	for i, l := range d.Lines {
		lines[i] = lineBody(l)
	}
	return encode(orderBody{d.ID, d.CustomerID, d.Currency, lines, payerBody(d.Payment)})
}

// RefundBody returns the message of a refund.
func RefundBody(r refund.Request) string {
	return encode(map[string]any{
		"type": "refund", "orderId": r.OrderID(), "refundId": r.ID(), "amount": r.Amount(), "reason": r.Reason(),
	})
}

func encode(body any) string {
	b, _ := json.Marshal(body) // only strings and numbers
	return string(b)
}

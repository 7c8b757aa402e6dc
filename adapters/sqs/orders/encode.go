package orders

import (
	"encoding/json"

	"orderonce/domain/order"
)

// Encode returns the message of a draft, which may be invalid: the same bytes for the
// same draft, with the fields in the order of docs/reference/message.md.
func Encode(d order.Draft) string {
	m := message{
		OrderID: &d.ID, CustomerID: d.CustomerID, Currency: d.Currency, Lines: make([]line, len(d.Lines)),
		Payment: payment{Customer: d.Payment.Customer, Method: d.Payment.Method},
	}
	for i, l := range d.Lines {
		m.Lines[i] = line{SKU: l.SKU, Quantity: &l.Quantity, UnitAmount: &l.UnitAmount}
	}
	body, _ := json.Marshal(m) // only strings and numbers
	return string(body)
}

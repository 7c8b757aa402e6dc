package view

import (
	"cmp"
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// Receipt returns one line about a receipt.
func Receipt(i receipt.Item) string {
	return fmt.Sprintf("%s  %s  %s since %s  %s\n", i.OrderID, i.Key, i.Status,
		i.UpdatedAt.UTC().Format(time.RFC3339), cmp.Or(i.Failure, string(i.Message), "-"))
}

// ReceiptJSON is a receipt in the output of --json. It has no address.
type ReceiptJSON struct {
	OrderID   order.ID          `json:"orderId"`
	Receipt   receipt.Key       `json:"receipt"`
	Status    receipt.Status    `json:"status"`
	Failure   string            `json:"failure,omitempty"`
	MessageID receipt.MessageID `json:"messageId,omitempty"`
	Attempt   int               `json:"attempt"`
	UpdatedAt time.Time         `json:"updatedAt"`
}

// NewReceiptJSON converts a receipt.
func NewReceiptJSON(i receipt.Item) ReceiptJSON {
	return ReceiptJSON{i.OrderID, i.Key, i.Status, i.Failure, i.Message, i.Attempt, i.UpdatedAt}
}

package view

import (
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// WaitingRefund returns two lines about a refund that only a person can end: what is
// known, and what to do.
func WaitingRefund(a refund.Account, i refund.Item) string {
	return fmt.Sprintf("%s  %s  %s  %s since %s  %s\n  %s\n", a.OrderID, i.ID,
		order.Money{Amount: i.Amount, Currency: a.Charged.Currency}, i.Status, Stamp(i.UpdatedAt), i.Failure,
		ResolveRefund(a, i))
}

// ResolveRefund says how a person ends a refund.
func ResolveRefund(a refund.Account, i refund.Item) string {
	first := ""
	if i.Status == refund.Open {
		first = "its message may be gone: redrive it, or post the refund again. If nobody wants it: "
	}
	return fmt.Sprintf("%slook for it in Stripe's Dashboard, payment %s, then "+
		"orders refund resolve %s %s --made RE_ID, or --not-made", first, a.Intent, a.OrderID, i.ID)
}

// WaitingRefundJSON is a refund that only a person can end, in the output of --json.
type WaitingRefundJSON struct {
	OrderID  order.ID       `json:"orderId"`
	Intent   order.IntentID `json:"paymentIntentId"`
	RefundID refund.ID      `json:"refundId"`
	Amount   int64          `json:"amount"`
	Currency order.Currency `json:"currency"`
	Status   refund.Status  `json:"status"`
	Failure  string         `json:"failure,omitempty"`
	Since    time.Time      `json:"since"`
	Next     string         `json:"next"`
}

// NewWaitingRefundJSON converts a refund.
func NewWaitingRefundJSON(a refund.Account, i refund.Item) WaitingRefundJSON {
	return WaitingRefundJSON{
		a.OrderID, a.Intent, i.ID, i.Amount, a.Charged.Currency, i.Status, i.Failure, i.UpdatedAt.UTC(), ResolveRefund(a, i),
	}
}

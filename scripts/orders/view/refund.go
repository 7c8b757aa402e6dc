package view

import (
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

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

// WaitingRefund formats a refund that only a person can end: what is known, and what to
// do.
func WaitingRefund(a refund.Account, i refund.Item) (string, WaitingRefundJSON) {
	next := fmt.Sprintf("look for it in Stripe's Dashboard, payment %s, then "+
		"orders refund resolve %s %s --made RE_ID, or --not-made", a.Intent, a.OrderID, i.ID)
	if i.Status == refund.Open {
		next = "its message may be gone: redrive it, or post the refund again. If nobody wants it: " + next
	}
	amount := order.Money{Amount: i.Amount, Currency: a.Charged.Currency}
	text := fmt.Sprintf("%s  %s  %s  %s since %s  %s\n  %s\n",
		a.OrderID, i.ID, amount, i.Status, Stamp(i.UpdatedAt), i.Failure, next)
	return text, WaitingRefundJSON{
		a.OrderID, a.Intent, i.ID, i.Amount, amount.Currency, i.Status, i.Failure, i.UpdatedAt.UTC(), next,
	}
}

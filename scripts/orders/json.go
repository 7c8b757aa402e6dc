package main

import (
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// orderJSON is an order in the output of --json. It has no customer and no payment
// method.
type orderJSON struct {
	OrderID    string        `json:"orderId"`
	Status     string        `json:"status,omitempty"` // "" if the row does not exist
	Amount     int64         `json:"amount,omitempty"` // in minor units
	Currency   string        `json:"currency,omitempty"`
	Intent     string        `json:"paymentIntentId,omitempty"`
	Failure    string        `json:"failure,omitempty"`
	Holds      order.Goods   `json:"holds,omitempty"` // pieces by SKU
	LastError  string        `json:"lastError,omitempty"`
	Attempts   int           `json:"attempts,omitempty"`
	HeldUntil  *time.Time    `json:"heldUntil,omitempty"`
	ParkedAt   *time.Time    `json:"parkedAt,omitempty"`
	CreatedAt  *time.Time    `json:"createdAt,omitempty"`
	UpdatedAt  *time.Time    `json:"updatedAt,omitempty"`
	RecheckAt  *time.Time    `json:"recheckAt,omitempty"`
	Dispute    *disputeJSON  `json:"dispute,omitempty"`
	Events     []eventJSON   `json:"events,omitempty"`
	Refunded   int64         `json:"refunded,omitempty"`
	ByOthers   int64         `json:"refundedByOthers,omitempty"`
	Refunds    []refundJSON  `json:"refunds,omitempty"`
	Receipts   []receiptJSON `json:"receipts,omitempty"`
	Charges    *int          `json:"charges,omitempty"` // at Stripe; absent if Stripe was not read
	AtStripe   []paymentJSON `json:"atStripe,omitempty"`
	WhatIsNext string        `json:"next,omitempty"`
}

type disputeJSON struct {
	ID       string    `json:"id"`
	Status   string    `json:"status"`
	OpenedAt time.Time `json:"openedAt"`
}

type eventJSON struct {
	Seq    int       `json:"seq"`
	Type   string    `json:"type"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

type refundJSON struct {
	RefundID string `json:"refundId"`
	Status   string `json:"status"`
	Amount   int64  `json:"amount"`
	ID       string `json:"stripeRefundId,omitempty"`
	Failure  string `json:"failure,omitempty"`
}

type paymentJSON struct {
	ID        string `json:"paymentIntentId"`
	State     string `json:"state"`
	Amount    int64  `json:"amount"`
	Bound     bool   `json:"bound"`
	Dashboard string `json:"dashboard"`
}

// recordJSON converts a row.
func recordJSON(r order.Record) orderJSON {
	o := orderJSON{
		OrderID: string(r.OrderID), Status: string(r.Status),
		Amount: r.Total.Amount, Currency: string(r.Total.Currency), Intent: string(r.Intent),
		Failure: r.Failure, Holds: r.Stock, LastError: r.LastError, Attempts: r.Attempt,
		ParkedAt: optional(r.ParkedAt), CreatedAt: optional(r.CreatedAt), UpdatedAt: optional(r.UpdatedAt),
		RecheckAt: optional(r.DueAt),
	}
	if r.Owner != "" {
		o.HeldUntil = optional(r.Until)
	}
	if d := r.Dispute; d.ID != "" {
		o.Dispute = &disputeJSON{string(d.ID), string(d.Status), d.CreatedAt.UTC()}
	}
	for _, e := range r.Events {
		o.Events = append(o.Events, eventJSON{e.Seq, e.Type(), string(e.From), string(e.To), e.Failure, e.At.UTC()})
	}
	return o
}

// accountJSON converts an account, without the row's history.
func accountJSON(a refund.Account) orderJSON {
	return orderJSON{
		OrderID: string(a.OrderID), Status: string(a.Status), Amount: a.Charged.Amount,
		Currency: string(a.Charged.Currency), Intent: string(a.Intent),
	}.withRefunds(a)
}

// withRefunds adds an account.
func (o orderJSON) withRefunds(a refund.Account) orderJSON {
	o.Refunded, o.ByOthers = a.Refunded(), a.Outside
	for _, i := range a.Items {
		made := refundJSON{string(i.ID), string(i.Status), i.Amount, string(i.Refund), i.Failure}
		o.Refunds = append(o.Refunds, made)
	}
	return o
}

// json returns the report as --json prints it.
func (f *report) json() orderJSON {
	o := orderJSON{OrderID: string(f.id)}
	if f.record != nil {
		o = recordJSON(*f.record)
	}
	if f.account != nil {
		o = o.withRefunds(*f.account)
	}
	for _, i := range f.receipts {
		o.Receipts = append(o.Receipts, newReceiptJSON(i))
	}
	if f.asked {
		o.Charges = new(f.charges())
	}
	for _, i := range f.intents {
		bound := f.record != nil && f.record.Intent == i.ID
		payment := paymentJSON{string(i.ID), string(i.State), i.Total.Amount, bound, dashboard(i)}
		o.AtStripe = append(o.AtStripe, payment)
	}
	o.WhatIsNext = f.next()
	return o
}

// optional returns nil for the zero time.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

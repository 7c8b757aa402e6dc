// Package view formats each thing for a person and as JSON: an order, its refunds and
// receipts, a dead letter. It reads nothing, and leaves out who pays and how.
package view

import (
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// OrderJSON is an order in the output of --json. It has no customer and no payment
// method.
type OrderJSON struct {
	OrderID    string           `json:"orderId"`
	Status     string           `json:"status,omitempty"` // "" if the row does not exist
	Amount     int64            `json:"amount,omitempty"` // in minor units
	Currency   string           `json:"currency,omitempty"`
	Intent     string           `json:"paymentIntentId,omitempty"`
	Failure    string           `json:"failure,omitempty"`
	Holds      order.Quantities `json:"holds,omitempty"` // units by SKU
	LastError  string           `json:"lastError,omitempty"`
	Attempts   int              `json:"attempts,omitempty"`
	HeldUntil  time.Time        `json:"heldUntil,omitzero"`
	ParkedAt   time.Time        `json:"parkedAt,omitzero"`
	CreatedAt  time.Time        `json:"createdAt,omitzero"`
	UpdatedAt  time.Time        `json:"updatedAt,omitzero"`
	RecheckAt  time.Time        `json:"recheckAt,omitzero"`
	Dispute    disputeJSON      `json:"dispute,omitzero"`
	Events     []EventJSON      `json:"events,omitempty"`
	Refunded   int64            `json:"refunded,omitempty"`
	ByOthers   int64            `json:"refundedByOthers,omitempty"`
	Refunds    []refundJSON     `json:"refunds,omitempty"`
	Receipts   []ReceiptJSON    `json:"receipts,omitempty"`
	Charges    *int             `json:"charges,omitempty"` // at Stripe; absent if Stripe was not read
	AtStripe   []PaymentJSON    `json:"atStripe,omitempty"`
	WhatIsNext []string         `json:"next,omitempty"`
}

type disputeJSON struct {
	ID       string    `json:"id"`
	Status   string    `json:"status"`
	OpenedAt time.Time `json:"openedAt"`
}

// EventJSON is a change of an order's status.
type EventJSON struct {
	Seq    int       `json:"seq"`
	Type   string    `json:"type"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

type refundJSON struct {
	RefundID  string    `json:"refundId"`
	Status    string    `json:"status"`
	Amount    int64     `json:"amount"`
	ID        string    `json:"stripeRefundId,omitempty"`
	Failure   string    `json:"failure,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// PaymentJSON is a PaymentIntent of an order.
type PaymentJSON struct {
	ID        string `json:"paymentIntentId"`
	State     string `json:"state"`
	Amount    int64  `json:"amount"`
	Bound     bool   `json:"bound"`
	Dashboard string `json:"dashboard"`
}

// NewOrderJSON converts a row.
func NewOrderJSON(r order.Record) OrderJSON {
	o := OrderJSON{
		OrderID: string(r.OrderID), Status: string(r.Status),
		Amount: r.Total.Amount, Currency: string(r.Total.Currency), Intent: string(r.Intent),
		Failure: r.Failure, Holds: r.Stock, LastError: r.LastError, Attempts: r.Attempt,
		ParkedAt: r.ParkedAt.UTC(), CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		RecheckAt: r.DueAt.UTC(),
	}
	if r.Owner != "" {
		o.HeldUntil = r.Until.UTC()
	}
	if d := r.Dispute; d.ID != "" {
		o.Dispute = disputeJSON{string(d.ID), string(d.Status), d.CreatedAt.UTC()}
	}
	for _, e := range r.Events {
		o.Events = append(o.Events, EventJSON{e.Seq, e.Type(), string(e.From), string(e.To), e.Failure, e.At.UTC()})
	}
	return o
}

// NewAccountJSON converts an account, without the row's history.
func NewAccountJSON(a refund.Account) OrderJSON {
	return OrderJSON{
		OrderID: string(a.OrderID), Status: string(a.Status), Amount: a.Charged.Amount,
		Currency: string(a.Charged.Currency), Intent: string(a.Intent),
	}.WithRefunds(a)
}

// WithRefunds adds an account.
func (o OrderJSON) WithRefunds(a refund.Account) OrderJSON {
	o.Refunded, o.ByOthers = a.Refunded(), a.Outside
	for _, i := range a.Items {
		made := refundJSON{string(i.ID), string(i.Status), i.Amount, string(i.Refund), i.Failure, i.UpdatedAt.UTC()}
		o.Refunds = append(o.Refunds, made)
	}
	return o
}

// JSON returns the report as --json prints it.
func (f *Report) JSON() OrderJSON {
	o := OrderJSON{OrderID: string(f.ID)}
	if f.Record != nil {
		o = NewOrderJSON(*f.Record)
	}
	if f.Account != nil {
		o = o.WithRefunds(*f.Account)
	}
	for _, i := range f.Receipts {
		o.Receipts = append(o.Receipts, NewReceiptJSON(i))
	}
	if f.Asked {
		o.Charges = new(f.Charges())
	}
	for _, i := range f.Intents {
		bound := f.Record != nil && f.Record.Intent == i.ID
		payment := PaymentJSON{string(i.ID), string(i.State), i.Total.Amount, bound, dashboard(i)}
		o.AtStripe = append(o.AtStripe, payment)
	}
	o.WhatIsNext = f.Next().Lines()
	return o
}

// Package audit compares the table with Stripe, both ways: every PaymentIntent of a
// period has its row, every row has its PaymentIntent, and both tell the same. It decides
// with pure functions over what the caller reads, and depends on neither AWS nor HTTP. It
// moves no money: a repair binds, settles and records.
//
// Read compare.go (what differs, and how it is called), run.go (the join), folder.go
// (where both sides wait for it) and repair.go.
package audit

import (
	"context"
	"errors"
	"iter"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Window is the period of an audit: PaymentIntents and rows created in [From, To).
type Window struct{ From, To time.Time }

// Contains reports whether t is in the window.
func (w Window) Contains(t time.Time) bool { return !t.Before(w.From) && t.Before(w.To) }

// Payment is a PaymentIntent, as far as it is compared.
type Payment struct {
	order.Intent // State is "" for one that this application never causes

	Refunded  int64         `json:"r,omitempty"` // pending refunds too, in the units of Total
	Disputed  bool          `json:"d,omitempty"`
	Dispute   order.Dispute `json:"-"` // the newest one; filled by Books.Payment
	Refunds   []string      `json:"-"` // ids of those in Refunded; filled by Books.Payment
	CreatedAt time.Time     `json:"c"`
}

// took reports whether the intent took money that did not go back entirely, or is about
// to.
func (p Payment) took() bool {
	return p.State == order.Processing || p.State == order.Succeeded && p.Refunded < p.Total.Amount
}

// Row is an order of the table, as far as it is compared.
type Row struct {
	OrderID     order.ID          `json:"o"`
	Status      order.Status      `json:"s"`
	Total       order.Money       `json:"t"`
	Intent      order.IntentID    `json:"i,omitempty"` // bound; "" if none is
	Fingerprint order.Fingerprint `json:"f"`
	Refunded    int64             `json:"r,omitempty"` // as refund.Account.Refunded
	Refunds     []string          `json:"-"`           // Stripe's ids of those in Refunded that are ours
	Unknown     []string          `json:"u,omitempty"` // our ids of the unknown ones
	Dispute     order.Dispute     `json:"d"`
	BusyUntil   time.Time         `json:"b"` // end of the latest lease of a worker
	CreatedAt   time.Time         `json:"c"`
	Problem     string            `json:"p,omitempty"` // why the row could not be read
}

// NewRow returns a row as it is compared. The refunds of the account are in it.
func NewRow(r order.Record, a refund.Account) Row {
	busy := r.Until
	var ours, unknown []string
	for _, i := range a.Items {
		if i.Until.After(busy) {
			busy = i.Until
		}
		if i.Status.Counts() {
			ours = append(ours, string(i.Refund))
		}
		if i.Status == refund.Unknown {
			unknown = append(unknown, string(i.ID))
		}
	}
	return Row{
		OrderID: r.OrderID, Status: r.Status, Total: r.Total, Intent: r.Intent, Fingerprint: r.Fingerprint,
		Refunded: a.Refunded(), Refunds: ours, Unknown: unknown, Dispute: r.Dispute,
		BusyUntil: busy, CreatedAt: r.CreatedAt,
	}
}

// Page is what one call read. Next continues after it. Skipped counts what it left out:
// PaymentIntents of other scopes, rows of Stripe's other mode.
type Page[T any] struct {
	Items   []T
	Skipped int
	Next    string
}

// ErrNoPayment means that Stripe has no PaymentIntent of this id.
var ErrNoPayment = errors.New("no such PaymentIntent")

// Books are the two sides of an audit. The caller keeps its budget of calls.
type Books interface {
	// Payments lists the scope's PaymentIntents that were created in the window or, if
	// refunded, those of which something went back in it, one for each refund, after a
	// position. It ends at the first error.
	Payments(ctx context.Context, w Window, refunded bool, after string) iter.Seq2[Page[Payment], error]

	// Rows scans the table after a position, and returns the rows that may belong to the
	// window: created before its end and changed after its start. It ends at the first
	// error.
	Rows(ctx context.Context, w Window, after string) iter.Seq2[Page[Row], error]

	// Payment reads one PaymentIntent, with its refunds and its newest dispute. It returns
	// ErrNoPayment.
	Payment(ctx context.Context, id order.IntentID) (Payment, error)

	// Row reads one row, strongly consistent. It returns order.ErrNotFound.
	Row(ctx context.Context, id order.ID) (Row, error)
}

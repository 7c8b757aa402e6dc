package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
)

// Report is what is known about one order.
type Report struct {
	ID      order.ID
	Now     time.Time
	Record  *order.Record   // nil if the row does not exist
	Account *refund.Account // nil if the order was not charged

	Receipts []receipt.Item
	Asked    bool           // Stripe was read
	Intents  []order.Intent // every one of the order, newest first
	Ledger   refund.Ledger  // of the bound intent, if it was charged
}

// Charges returns how often Stripe charged the order.
func (f *Report) Charges() (n int) {
	for _, i := range f.Intents {
		if i.State == order.Succeeded {
			n++
		}
	}
	return n
}

// Charged returns an intent that charged the order or, if none did, the newest one.
func (f *Report) Charged() order.IntentID {
	for _, i := range f.Intents {
		if i.State == order.Succeeded {
			return i.ID
		}
	}
	return f.Intents[0].ID
}

// surplus returns the intents that charged the order beside the one that is bound.
func (f *Report) surplus() (ids []string) {
	for _, i := range f.Intents {
		if i.State == order.Succeeded && i.ID != f.Record.Intent {
			ids = append(ids, string(i.ID))
		}
	}
	return ids
}

// Text formats the report for a person.
func (f *Report) Text() string {
	var b strings.Builder
	if f.Record != nil {
		b.WriteString(Order(*f.Record))
	}
	if a := f.Account; a != nil && (len(a.Items) > 0 || a.Outside != 0) {
		b.WriteString(Refunds(*a))
	}
	for _, i := range f.Receipts {
		fmt.Fprintf(&b, "receipt    %s  %s %s  %s\n",
			Stamp(i.UpdatedAt), i.Key, i.Status, cmp.Or(i.Failure, string(i.Message), "-"))
	}
	if f.Asked {
		b.WriteString(f.atStripe())
	}
	fmt.Fprintf(&b, "next       %s\n", f.next())
	return b.String()
}

// atStripe formats what Stripe has of the order.
func (f *Report) atStripe() string {
	var b strings.Builder
	switch n := f.Charges(); n {
	case 0:
		b.WriteString("charged    no\n")
	case 1:
		b.WriteString("charged    once\n")
	default:
		fmt.Fprintf(&b, "charged    %d TIMES\n", n)
	}
	for _, i := range f.Intents {
		bound := ""
		if f.Record == nil || f.Record.Intent != i.ID {
			bound = ", not bound to the order"
		}
		fmt.Fprintf(&b, "at Stripe  %s, %s, %s%s\n           %s\n", i.ID, i.State, i.Total, bound, dashboard(i))
	}
	if len(f.Ledger.Refunds) > 0 {
		b.WriteString(Ledger(f.Ledger))
	}
	return b.String()
}

// dashboard returns the address of a payment in Stripe's Dashboard.
func dashboard(i order.Intent) string {
	mode := ""
	if i.Mode == order.TestMode {
		mode = "test/"
	}
	return "https://dashboard.stripe.com/" + mode + "payments/" + string(i.ID)
}

// next returns what happens to the order by itself, or what a person must do.
func (f *Report) next() string {
	switch r := f.Record; {
	case r == nil:
		return "a message of this order prepares another payment: restore the row first (orders restore --help)"
	case r.Intent != "" && f.Charges() > 1:
		return "refund " + strings.Join(f.surplus(), " and ") + " at Stripe, unless that was done: " +
			"docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice"
	case r.Status == order.Open && !r.ParkedAt.IsZero():
		return "nothing by itself: its message is in the dead-letter queue, because of " + r.LastError
	case r.Status == order.Open && order.LeaseRunning(r.Until, f.Now):
		return "a function works on it until " + Stamp(r.Until)
	default:
		return nextOf(r.Status) + recheck(r.DueAt)
	}
}

func nextOf(s order.Status) string {
	switch s {
	case order.Open:
		return "its message comes back"
	case order.ActionRequired:
		return "the customer must authenticate"
	case order.Pending:
		return "the bank decides, within days"
	case order.Declined:
		return "nothing charges it, unless the customer pays the same PaymentIntent; sell again under a new orderId"
	case order.Canceled:
		return "nothing: it stays canceled"
	case order.OutOfStock:
		return "nothing: it is never charged; sell again under a new orderId when there is stock"
	case order.Refused:
		return "nothing by itself: correct the cause, then redrive its message"
	case order.Paid, order.PartiallyRefunded, order.Refunded:
	}
	return "nothing: it is settled"
}

func recheck(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	return "; reconcile looks at it from " + Stamp(due) + " on"
}

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

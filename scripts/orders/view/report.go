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
	Scope    order.Scope
	Asked    bool                             // Stripe was read
	Intents  []order.Intent                   // every one of the order, newest first
	Ledgers  map[order.IntentID]refund.Ledger // of those that charged it
}

// back returns how much of an intent's charge went back.
func (f *Report) back(id order.IntentID) (sum int64) {
	for _, r := range f.Ledgers[id].Refunds {
		if r.Status.Counts() {
			sum += r.Total.Amount
		}
	}
	return sum
}

// Charges returns how often Stripe charged the order, without the charges that went back;
// but 1 if every charge went back.
func (f *Report) Charges() int {
	charged, kept := 0, 0
	for _, i := range f.Intents {
		if i.State == order.Succeeded {
			charged++
			if f.back(i.ID) < i.Total.Amount {
				kept++
			}
		}
	}
	return max(kept, min(charged, 1))
}

// BackElsewhere says what went back of payments of the order that the row does not name,
// "" if nothing did.
func (f *Report) BackElsewhere() string {
	var all []string
	for _, i := range f.Intents {
		if sum := f.back(i.ID); sum > 0 && i.ID != f.Record.Intent {
			all = append(all, fmt.Sprintf("%s of %s, another payment of this order, went back already",
				order.Money{Amount: sum, Currency: i.Total.Currency}, i.ID))
		}
	}
	return strings.Join(all, ", ")
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
	for _, line := range f.Next().Lines() {
		fmt.Fprintf(&b, "next       %s\n", line)
	}
	return b.String()
}

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
		if l := f.Ledgers[i.ID]; len(l.Refunds) > 0 {
			b.WriteString(Ledger(l))
		}
	}
	return b.String()
}

func dashboard(i order.Intent) string {
	mode := ""
	if i.Mode == order.TestMode {
		mode = "test/"
	}
	return "https://dashboard.stripe.com/" + mode + "payments/" + string(i.ID)
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

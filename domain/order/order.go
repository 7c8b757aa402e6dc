// Package order charges an order exactly once and records the outcome. It decides with
// pure functions and acts through ports. It does not depend on queues, tables, HTTP,
// clocks or logs, and imports the standard library alone.
//
// Read order.go (what an order is), status.go (the statuses and their transitions),
// ports.go (what the package needs from outside) and process.go (the protocol: claim,
// prepare, bind, confirm, finish).
package order

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ID is an order's business key. At most one charge ever exists for it.
type ID string

// Limits of one order.
const (
	MaxLines      = 100
	MaxQuantity   = 1_000_000
	MaxUnitAmount = 999_999_999_999 // in the currency with the largest amounts: see Currency.Max
)

// The rules of the Valid functions in words, for error messages.
const (
	IDRule         = "1 to 64 letters, digits, '.', '_' or '-', the first a letter or a digit"
	CustomerIDRule = "1 to 128 printable characters without blanks"
	SKURule        = "1 to 64 printable characters without blanks"
	ReferenceRule  = "an id such as \"pm_...\" or \"cus_...\": lower-case letters, '_', then letters, digits or '_', at most 255"
)

// ValidID reports whether s is an order id: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`.
func ValidID(s string) bool {
	return s != "" && len(s) <= 64 && isAlnum(s[0]) && every(s, isPlain)
}

// ValidCustomerID reports whether s is a customer id of the producer: 1 to 128 printable
// ASCII characters without blanks.
func ValidCustomerID(s string) bool { return printable(s, 128) }

// ValidSKU reports whether s is a SKU: 1 to 64 printable ASCII characters without
// blanks.
func ValidSKU(s string) bool { return printable(s, 64) }

// ValidReference reports whether s has the form of the provider's object ids. It rejects
// a card number or a name that was put into the field by mistake, before either is stored
// or logged.
func ValidReference(s string) bool {
	prefix, rest, ok := strings.Cut(s, "_")
	return ok && prefix != "" && rest != "" && len(s) <= 255 &&
		every(prefix, func(c byte) bool { return 'a' <= c && c <= 'z' }) &&
		every(rest, func(c byte) bool { return isAlnum(c) || c == '_' })
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// isPlain reports whether c may appear in order ids and field names.
func isPlain(c byte) bool { return isAlnum(c) || c == '.' || c == '_' || c == '-' }

func printable(s string, most int) bool {
	return s != "" && len(s) <= most && every(s, func(c byte) bool { return '!' <= c && c <= '~' })
}

func every(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

// Line is a quantity of one SKU. UnitAmount is in the units of Money.
type Line struct {
	SKU        string
	Quantity   int64
	UnitAmount int64
}

// Payment identifies the payer and the payment method by the provider's ids. Neither is
// ever logged.
type Payment struct {
	Customer string
	Method   string
}

// Draft is an order as it was received, before validation.
type Draft struct {
	ID         string
	CustomerID string
	Currency   string
	Lines      []Line
	Payment    Payment
}

// Order is a valid order. Only New makes one, so code that holds an Order need not
// validate it again.
type Order struct {
	id          ID
	customerID  string
	total       Money
	lines       []Line
	payment     Payment
	fingerprint Fingerprint   // of a new record, or the one that the order's record carries
	known       []Fingerprint // in every version that this release can compute
}

// New validates a draft. It returns an *InvalidError that lists every problem.
func New(d Draft) (Order, error) {
	total, problems := validate(d)
	if len(problems) > 0 {
		return Order{}, &InvalidError{Of: "order", Problems: problems}
	}
	known := fingerprints(d)
	return Order{
		id:          ID(d.ID),
		customerID:  d.CustomerID,
		total:       total,
		lines:       slices.Clone(d.Lines),
		payment:     d.Payment,
		fingerprint: known[0],
		known:       known,
	}, nil
}

// ID returns the business key.
func (o Order) ID() ID { return o.id }

// CustomerID returns the producer's id of the customer.
func (o Order) CustomerID() string { return o.customerID }

// Total returns the amount to charge.
func (o Order) Total() Money { return o.total }

// Lines returns a copy of the order's lines.
func (o Order) Lines() []Line { return slices.Clone(o.lines) }

// Payment returns the payer and the payment method.
func (o Order) Payment() Payment { return o.payment }

// Fingerprint returns the hash of the order's content. An order from a claim has the
// version that its record carries, any other order the newest version that this release
// writes.
func (o Order) Fingerprint() Fingerprint { return o.fingerprint }

// Problem is one invalid field of a draft.
type Problem struct {
	Field string // as in the message, such as "lines[2].quantity"
	Value string // as Quote and QuoteInt print it; "" for fields that hold personal or payment data
	Want  string
}

// String returns the problem as "field value: want rule".
func (p Problem) String() string {
	if p.Value == "" {
		return p.Field + ": want " + p.Want
	}
	return p.Field + " " + p.Value + ": want " + p.Want
}

// InvalidError lists every problem of a draft. Retrying does not help.
type InvalidError struct {
	Of       string // what the draft is of: "order" or "refund"
	Problems []Problem
}

// Error lists the problems, separated by semicolons.
func (e *InvalidError) Error() string {
	all := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p.String()
	}
	return "invalid " + e.Of + ": " + strings.Join(all, "; ")
}

// validate returns the draft's total, or every problem of the draft.
func validate(d Draft) (total Money, all []Problem) {
	check := func(ok bool, field, value, want string) {
		if !ok {
			all = append(all, Problem{field, value, want})
		}
	}
	check(ValidNewID(d.ID), "orderId", Quote(d.ID), NewIDRule)
	check(ValidCustomerID(d.CustomerID), "customerId", "", CustomerIDRule)
	check(ValidCurrency(d.Currency), "currency", Quote(d.Currency), CurrencyRule)
	check(ValidReference(d.Payment.Customer), "payment.customer", "", ReferenceRule)
	check(ValidReference(d.Payment.Method), "payment.method", "", ReferenceRule)
	n, c := len(d.Lines), Currency(d.Currency)
	check(1 <= n && n <= MaxLines, "lines", strconv.Itoa(n), fmt.Sprintf("1 to %d lines", MaxLines))
	quantities, amounts := fmt.Sprintf("1 to %d", MaxQuantity), fmt.Sprintf("0 to %d", MaxUnitAmount)
	most := int64(MaxUnitAmount)
	if ValidCurrency(d.Currency) {
		amounts, most = fmt.Sprintf("0 to %d in %s", c.Max(), c), c.Max()
	}
	for i, l := range d.Lines[:min(n, MaxLines)] {
		at := "lines[" + strconv.Itoa(i) + "]."
		check(ValidSKU(l.SKU), at+"sku", Quote(l.SKU), SKURule)
		check(1 <= l.Quantity && l.Quantity <= MaxQuantity, at+"quantity", QuoteInt(l.Quantity), quantities)
		check(0 <= l.UnitAmount && l.UnitAmount <= most, at+"unitAmount", QuoteInt(l.UnitAmount), amounts)
	}
	if len(all) > 0 { // the sum of invalid lines says nothing
		return total, all
	}
	amount, fits := sum(d.Lines, most)
	total = Money{amount, c}
	if !fits {
		want := fmt.Sprintf("at most %d in %s: the lines add up to more than one charge can hold", most, c)
		return total, []Problem{{Field: "total", Want: want}}
	}
	if total.Validate() != nil {
		return total, []Problem{{"total", strconv.FormatInt(amount, 10), c.amountRule()}}
	}
	return total, nil
}

// Package order is the whole business: an order is charged exactly once, and its record says so. It decides with pure
// functions and acts through three ports. It knows nothing of queues, tables, HTTP, clocks or logs, and it imports
// the standard library alone.
//
// Read order.go (what an order is), status.go (where it can go), ports.go (what it asks of the outside) and
// process.go (the protocol: claim, prepare, bind, confirm, finish).
package order

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ID is an order's business key: at most one charge exists for it, for ever.
type ID string

// Limits of one order.
const (
	MaxLines      = 100
	MaxQuantity   = 1_000_000
	MaxUnitAmount = 999_999_999_999 // in the currency with the largest amounts: see Currency.Max
)

// What the Valid functions accept, in words, for messages to people.
const (
	IDRule         = "1 to 64 letters, digits, '.', '_' or '-', the first a letter or a digit"
	CustomerIDRule = "1 to 128 printable characters without blanks"
	SKURule        = "1 to 64 printable characters without blanks"
	ReferenceRule  = "an id such as \"pm_...\" or \"cus_...\": lower-case letters, '_', then letters, digits or '_', at most 255"
)

// ValidID reports whether s is an order id: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`.
func ValidID(s string) bool {
	if s == "" || len(s) > 64 || !isAlnum(s[0]) {
		return false
	}
	return every(s, isPlain)
}

// ValidCustomerID reports whether s can name a customer of ours.
func ValidCustomerID(s string) bool { return printable(s, 128) }

// ValidSKU reports whether s can name an article.
func ValidSKU(s string) bool { return printable(s, 64) }

// ValidReference reports whether s looks like the id of an object at the payment provider, so that a card number
// or a name that was put there by mistake is refused and goes no further.
func ValidReference(s string) bool {
	prefix, rest, ok := strings.Cut(s, "_")
	return ok && prefix != "" && rest != "" && len(s) <= 255 &&
		every(prefix, func(c byte) bool { return 'a' <= c && c <= 'z' }) &&
		every(rest, func(c byte) bool { return isAlnum(c) || c == '_' })
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// isPlain reports whether c stands in ids and in names of fields.
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

// Line is one article of an order. UnitAmount has the units of Money.
type Line struct {
	SKU        string
	Quantity   int64
	UnitAmount int64
}

// Payment names who pays and with what, by the provider's ids. Neither is ever logged.
type Payment struct {
	Customer string
	Method   string
}

// Draft is an order as somebody wrote it, not yet believed.
type Draft struct {
	ID         string
	CustomerID string
	Currency   string
	Lines      []Line
	Payment    Payment
}

// Order is an order that New believed. Its fields cannot be set from outside, so whoever holds one may charge it.
type Order struct {
	id          ID
	customerID  string
	total       Money
	payment     Payment
	fingerprint Fingerprint   // what a new record gets, or what the order's record carries
	known       []Fingerprint // in every version that this release can compute
}

// New makes an order out of a draft. Its error is an *InvalidError that names every problem.
func New(d Draft) (Order, error) {
	if problems := problemsOf(d); len(problems) > 0 {
		return Order{}, &InvalidError{Problems: problems}
	}
	total, _ := sum(d.Lines, Currency(d.Currency).Max()) // problemsOf has checked it
	known := fingerprints(d)
	return Order{
		id:          ID(d.ID),
		customerID:  d.CustomerID,
		total:       Money{total, Currency(d.Currency)},
		payment:     d.Payment,
		fingerprint: known[0],
		known:       known,
	}, nil
}

// ID is the business key.
func (o Order) ID() ID { return o.id }

// CustomerID is our own name for the customer.
func (o Order) CustomerID() string { return o.customerID }

// Total is what is charged.
func (o Order) Total() Money { return o.total }

// Payment is who pays and with what.
func (o Order) Payment() Payment { return o.payment }

// Fingerprint identifies the order's content: in the version that its record carries if the order comes from a
// claim, otherwise in the newest version that this release writes.
func (o Order) Fingerprint() Fingerprint { return o.fingerprint }

// Problem is one thing wrong with a draft.
type Problem struct {
	Field string // as in the message, such as "lines[2].quantity"
	Value string // as Quote and QuoteInt show it; "" where it is personal or payment data also if nothing is wrong with it
	Want  string
}

// String is the problem for people.
func (p Problem) String() string {
	if p.Value == "" {
		return p.Field + ": want " + p.Want
	}
	return p.Field + " " + p.Value + ": want " + p.Want
}

// InvalidError says everything that is wrong with a draft. It will be as wrong the next time.
type InvalidError struct{ Problems []Problem }

// Error names every problem.
func (e *InvalidError) Error() string {
	all := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p.String()
	}
	return "invalid order: " + strings.Join(all, "; ")
}

func problemsOf(d Draft) []Problem {
	var all []Problem
	check := func(ok bool, field, value, want string) {
		if !ok {
			all = append(all, Problem{field, value, want})
		}
	}
	check(ValidID(d.ID), "orderId", Quote(d.ID), IDRule)
	check(ValidCustomerID(d.CustomerID), "customerId", "", CustomerIDRule)
	check(ValidCurrency(d.Currency), "currency", Quote(d.Currency), CurrencyRule)
	check(ValidReference(d.Payment.Customer), "payment.customer", "", ReferenceRule)
	check(ValidReference(d.Payment.Method), "payment.method", "", ReferenceRule)
	n := len(d.Lines)
	check(1 <= n && n <= MaxLines, "lines", strconv.Itoa(n), fmt.Sprintf("1 to %d lines", MaxLines))
	for i, l := range d.Lines[:min(n, MaxLines)] {
		at := "lines[" + strconv.Itoa(i) + "]."
		check(ValidSKU(l.SKU), at+"sku", Quote(l.SKU), SKURule)
		check(1 <= l.Quantity && l.Quantity <= MaxQuantity, at+"quantity", QuoteInt(l.Quantity), QuantityRule())
		check(0 <= l.UnitAmount && l.UnitAmount <= MaxUnitAmount, at+"unitAmount", QuoteInt(l.UnitAmount), UnitAmountRule())
	}
	if len(all) > 0 {
		return all
	}
	return problemsOfMoney(d)
}

// problemsOfMoney holds the amounts of an order whose fields are each valid to its currency's limits.
func problemsOfMoney(d Draft) []Problem {
	var all []Problem
	c := Currency(d.Currency)
	for i, l := range d.Lines {
		if l.UnitAmount > c.Max() {
			field := fmt.Sprintf("lines[%d].unitAmount", i)
			all = append(all, Problem{field, QuoteInt(l.UnitAmount), fmt.Sprintf("0 to %d in %s", c.Max(), c)})
		}
	}
	if len(all) > 0 {
		return all
	}
	total, err := sum(d.Lines, c.Max())
	if err != nil {
		return []Problem{{Field: "total", Want: fmt.Sprintf("at most %d in %s: the %v", c.Max(), c, err)}}
	}
	if (Money{total, c}).Validate() == nil {
		return nil
	}
	return []Problem{{"total", strconv.FormatInt(total, 10), totalRule(c)}}
}

// QuantityRule says what a line's quantity may be.
func QuantityRule() string { return fmt.Sprintf("1 to %d", MaxQuantity) }

// UnitAmountRule says what a line's unit amount may be in the currency with the largest amounts. What is beyond the
// order's own currency, New refuses with that currency's limit.
func UnitAmountRule() string { return fmt.Sprintf("0 to %d", MaxUnitAmount) }

func totalRule(c Currency) string {
	rule := fmt.Sprintf("1 to %d in %s", c.Max(), c)
	if step := c.Step(); step > 1 {
		rule += fmt.Sprintf(", a multiple of %d", step)
	}
	return rule
}

// How much of a stranger's text is repeated. A date of birth, a phone number and a card number have more digits.
const (
	maxQuoted = 32
	maxDigits = 7
)

// Plain reports whether a text that a stranger wrote may be repeated: it is short, has few digits, and no characters but letters,
// digits, '.', '_' and '-'. Anything may stand in the wrong place, and people's names, addresses and numbers mostly have others.
func Plain(s string) bool {
	return len(s) <= maxQuoted && digits(s) <= maxDigits && every(s, isPlain)
}

// Quote is a text that a stranger wrote, for a message to people: the text itself if it is Plain, else why it is not.
func Quote(s string) string {
	if Plain(s) {
		return strconv.Quote(s)
	}
	why := ""
	if i := slices.IndexFunc([]byte(s), func(c byte) bool { return !isPlain(c) }); i >= 0 {
		strange, _ := utf8.DecodeRuneInString(s[i:])
		why = ", with " + strconv.QuoteRuneToASCII(strange)
	} else if n := digits(s); n > maxDigits {
		why = fmt.Sprintf(", with %d digits", n)
	}
	return fmt.Sprintf("[withheld: length %d%s]", utf8.RuneCountInString(s), why)
}

// QuoteInt is a number that a stranger wrote, for a message to people: the number itself, or how many digits it has.
func QuoteInt(n int64) string {
	s := strconv.FormatInt(n, 10)
	if n := digits(s); n > maxDigits {
		return fmt.Sprintf("[withheld: %d digits]", n)
	}
	return s
}

func digits(s string) (n int) {
	for i := range len(s) {
		if '0' <= s[i] && s[i] <= '9' {
			n++
		}
	}
	return n
}

package world

import (
	"fmt"
	"strconv"
	"strings"

	"orderonce/domain/order"
)

// The payment methods of the worlds.
const (
	Visa       = "pm_card_visa"
	Mastercard = "pm_card_mastercard"
	Declined   = "pm_card_chargeDeclined"
	NeedsAuth  = "pm_card_authenticationRequired"
	TakesDays  = "pm_usBankAccount_processing"
	NoSuchCard = "pm_card_chargeDeclinedMisspelt"
)

// MaxLines is the largest number of lines of an order.
const MaxLines = 3

// Message is what a producer sends: an order, or a body that is not one. Messages with
// the same ID are a conflict unless they are equal.
type Message struct {
	ID       order.ID
	Customer string // the producer's id of the customer; in a FIFO queue also the message group
	Currency string
	Lines    [MaxLines]SKU // up to the first without a quantity
	Payer    string        // Stripe's id of the customer
	Method   string        // a payment method of stripetest
	Poison   string        // if not "", the body, which is not an order
}

// SKU is one line of an order. Price is in the unit of Stripe's amount.
type SKU struct {
	SKU      string
	Quantity int64
	Price    int64
}

func (m *Message) lines() []SKU {
	for i, l := range m.Lines {
		if l.Quantity == 0 {
			return m.Lines[:i]
		}
	}
	return m.Lines[:]
}

func (m *Message) last() *SKU { return &m.Lines[len(m.lines())-1] }

// Body returns the message's body. The product does not write it, so that the product's
// decoder cannot agree with itself.
func (m *Message) Body() string {
	if m.Poison != "" {
		return m.Poison
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"orderId":%q,"customerId":%q,"currency":%q,"lines":[`, m.ID, m.Customer, m.Currency)
	for i, l := range m.lines() {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sku":%q,"quantity":%d,"unitAmount":%d}`, l.SKU, l.Quantity, l.Price)
	}
	fmt.Fprintf(&b, `],"payment":{"customer":%q,"method":%q}}`, m.Payer, m.Method)
	return b.String()
}

// Amount returns the total of the order.
func (m *Message) Amount() (sum int64) {
	for _, l := range m.lines() {
		sum += l.Quantity * l.Price
	}
	return sum
}

func (m *Message) group() string {
	if m.Customer == "" {
		return "none"
	}
	return m.Customer
}

// String returns everything in which two orders can differ.
func (m *Message) String() string {
	if m.Poison != "" {
		return "no order: " + m.Poison
	}
	lines := make([]string, len(m.lines()))
	for i, l := range m.lines() {
		price := order.Money{Amount: l.Price, Currency: order.Currency(m.Currency)}
		lines[i] = strconv.FormatInt(l.Quantity, 10) + " " + l.SKU + " at " + price.String()
	}
	return fmt.Sprintf("order %s of %s: %s, %s pays with %s",
		m.ID, m.Customer, strings.Join(lines, " and "), m.Payer, m.Method)
}

// Field is a part of an order's content in which two orders with the same id can differ.
// Each is part of the fingerprint.
type Field struct {
	Name   string
	change func(m *Message)
}

// Fields returns every field.
func Fields() []Field {
	return []Field{
		{"customer", func(m *Message) { m.Customer += "0" }},
		{"currency", func(m *Message) { m.Currency = otherCurrency(m.Currency) }},
		{"SKU", func(m *Message) { m.last().SKU += "-XL" }},
		{"quantity", func(m *Message) { m.last().Quantity++ }},
		{"price", func(m *Message) { m.last().Price += 100 }}, // Stripe accepts this in every currency
		{"a line more", func(m *Message) { // it is free
			m.Lines[min(len(m.lines()), MaxLines-1)] = SKU{SKU: "GIFT", Quantity: 1}
		}},
		{"the order of its lines", func(m *Message) { m.Lines[0], *m.last() = *m.last(), m.Lines[0] }},
		{"the same sum in other pieces", func(m *Message) { // prices are even
			m.Lines[0].Quantity, m.Lines[0].Price = 2*m.Lines[0].Quantity, m.Lines[0].Price/2
		}},
		{"payer", func(m *Message) { m.Payer += "0" }},
		{"payment method", func(m *Message) { m.Method = Mastercard }},
		{"where the payer ends and the method begins", func(m *Message) {
			m.Payer, m.Method = m.Payer+m.Method[:1], m.Method[1:]
		}},
	}
}

// With returns the order with another content in one field. If the order has nothing to
// change there, such as a second line to swap, a quantity changes.
func (m Message) With(f Field) Message {
	other := m
	f.change(&other)
	if other == m {
		other.last().Quantity++
	}
	return other
}

// Price is an example of a price in a currency.
type Price struct {
	Currency string
	Amount   int64 // even, at least Stripe's minimum and a multiple of what Stripe requires

	other string // a currency in which the same number is another sum
}

// Prices returns prices in currencies with two, no and three decimals, and in one without
// decimals that Stripe takes in hundredths (docs.stripe.com/currencies, special cases).
func Prices() []Price {
	return []Price{
		{"usd", 1998, "eur"},
		{"jpy", 1980, "usd"},
		{"kwd", 5120, "bhd"},
		{"eur", 2450, "jpy"},
		{"isk", 129_800, "usd"},
		{"krw", 19_900, "jpy"},
		{"bhd", 7560, "kwd"},
	}
}

func otherCurrency(currency string) string {
	for _, p := range Prices() {
		if p.Currency == currency {
			return p.other
		}
	}
	return "usd"
}

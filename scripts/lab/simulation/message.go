package simulation

import (
	"fmt"
	"strconv"
	"strings"

	"orderonce/domain/order"
)

// maxLines is the number of lines that an order of these worlds can have.
const maxLines = 3

// Message is what a producer sends: an order, or a body that is not one. Two messages
// with the same ID are a conflict unless they are equal.
type Message struct {
	ID       order.ID
	Customer string // the producer's name for the customer; in a FIFO world also the message group
	Currency string
	Lines    [maxLines]Article // up to the first without a quantity
	Payer    string            // Stripe's customer
	Method   string            // a payment method of stripetest
	Poison   string            // if not "", the body, which is not an order
}

// Article is one line of an order. Price is in the units of Stripe's amount.
type Article struct {
	SKU      string
	Quantity int64
	Price    int64
}

// lines returns the lines that the order has.
func (m *Message) lines() []Article {
	for i, l := range m.Lines {
		if l.Quantity == 0 {
			return m.Lines[:i]
		}
	}
	return m.Lines[:]
}

// body returns the message's body. It is written here and not by the product, so that the
// product's decoder cannot agree with itself.
func (m *Message) body() string {
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

// amount returns what the order costs.
func (m *Message) amount() (sum int64) {
	for _, l := range m.lines() {
		sum += l.Quantity * l.Price
	}
	return sum
}

// group returns the message group of a FIFO world.
func (m *Message) group() string {
	if m.Customer == "" {
		return "nobody"
	}
	return m.Customer
}

// String describes the order with everything in which another one can differ.
func (m *Message) String() string {
	articles := make([]string, len(m.lines()))
	for i, l := range m.lines() {
		price := order.Money{Amount: l.Price, Currency: order.Currency(m.Currency)}
		articles[i] = strconv.FormatInt(l.Quantity, 10) + " " + l.SKU + " at " + price.String()
	}
	return fmt.Sprintf(
		"order %s of %s: %s, %s pays with %s",
		m.ID,
		m.Customer,
		strings.Join(articles, " and "),
		m.Payer,
		m.Method,
	)
}

// field is a part of an order's content.
type field string

// The fields in which two orders with the same id can differ. Each is part of the
// fingerprint.
const (
	customerField field = "customer"
	currencyField field = "currency"
	skuField      field = "article"
	quantityField field = "quantity"
	priceField    field = "price"
	linesField    field = "a line more"
	swapField     field = "the order of its lines"
	piecesField   field = "the same sum in other pieces"
	payerField    field = "payer"
	methodField   field = "payment method"
	splitField    field = "where the payer ends and the method begins"
)

func fields() []field {
	return []field{
		customerField, currencyField, skuField, quantityField, priceField, linesField, swapField, piecesField,
		payerField, methodField, splitField,
	}
}

// but returns the order with another content: in this field alone, or in a quantity if
// the order has nothing of the kind, such as a second line to swap.
func (m Message) but(f field) Message {
	if other := m.changed(f); other != m {
		return other
	}
	return m.changed(quantityField)
}

func (m Message) changed(f field) Message {
	lines := m.lines()
	last, first := &m.Lines[len(lines)-1], &m.Lines[0]
	switch f {
	case customerField:
		m.Customer += "0"
	case currencyField:
		m.Currency = sameNumber(m.Currency)
	case skuField:
		last.SKU += "-XL"
	case quantityField:
		last.Quantity++
	case priceField:
		last.Price += 100 // which Stripe takes in every currency
	case linesField:
		m.Lines[min(len(lines), maxLines-1)] = Article{SKU: "GIFT", Quantity: 1} // it is free
	case swapField:
		*first, *last = *last, *first
	case piecesField:
		first.Quantity, first.Price = 2*first.Quantity, first.Price/2 // prices are even
	case payerField:
		m.Payer += "0"
	case methodField:
		m.Method = mastercard
	case splitField:
		m.Payer, m.Method = m.Payer+m.Method[:1], m.Method[1:]
	}
	return m
}

// price is an example of what is charged in a currency.
type price struct {
	currency string
	amount   int64  // even, at least Stripe's minimum and a multiple of what Stripe asks for
	other    string // a currency in which the same number is another sum
}

// prices are in currencies with two, no and three decimals, and in one that Stripe takes
// in hundredths although it has none (docs.stripe.com/currencies, special cases).
func prices() []price {
	return []price{
		{"usd", 1998, "eur"},
		{"jpy", 1980, "usd"},
		{"kwd", 5120, "bhd"},
		{"eur", 2450, "jpy"},
		{"isk", 129_800, "usd"},
		{"krw", 19_900, "jpy"},
		{"bhd", 7560, "kwd"},
	}
}

func sameNumber(currency string) string {
	for _, p := range prices() {
		if p.currency == currency {
			return p.other
		}
	}
	return "usd"
}

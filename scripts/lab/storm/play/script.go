package play

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"orderonce/domain/order"
)

// Script is what the producers send. The same script always sends the same messages.
type Script struct {
	Seed   uint64
	Orders int
	// Duplicates is the share of messages that are delivered or sent more than once: a third each twice in a batch, to two
	// instances at once, and sent again by the producer.
	Duplicates float64
	Copies     int // how often every message is sent; 0 is once
}

// content says what a message holds.
type content int

const (
	original content = iota
	other            // the same order with another amount
	invalid          // no order, or one that must not be charged
)

// message is one message of the script. Its name stays with it through redrives, which give it new ids. What its order must come
// to is the script's own knowledge, and no handler's.
type message struct {
	order   int
	number  int // among the messages of its order
	content content
	body    string
	total   order.Money  // what may be charged for it
	ends    order.Status // what the bank says to its card
}

func (m message) name() string { return strconv.Itoa(m.order) + "." + strconv.Itoa(m.number) }

// AttrName is the message attribute that carries a message's name.
const AttrName = "storm-message"

// Every personal value starts with the canary, so that one look at a log line is enough.
const canary = "canary"

func orderID(n int) string { return fmt.Sprintf("storm-%06d", n) }

// numberOf is the inverse of orderID: -1 for what is no id of ours.
func numberOf(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "storm-"))
	if err != nil || orderID(n) != id {
		return -1
	}
	return n
}

// messages returns all messages of one order: of 100 orders, about two are none and three come with two contents.
func (s Script) messages(n int) []message {
	dice := rand.New(rand.NewPCG(s.Seed, uint64(n))) //nolint:gosec // a script must be the same each time
	roll := dice.Float64()
	if roll < 0.02 {
		return []message{{order: n, content: invalid, body: malformed(dice, newDraft(n, dice).body())}}
	}
	d := newDraft(n, dice)
	all := []message{d.message()}
	if roll < 0.05 {
		d.quantity += 10
		all = append(all, d.message())
		all[1].content = other
	}
	for range max(s.Copies, 1) - 1 {
		all = append(all, all[0])
	}
	if dice.Float64() < s.Duplicates/3 {
		all = append(all, all[0])
	}
	for i := range all {
		all[i].number = i
	}
	return all
}

// draft is an order that the script sends.
type draft struct {
	n              int
	currency       order.Currency
	method         string
	ends           order.Status
	quantity, unit int64
}

// newDraft is a valid order; most cards are good.
func newDraft(n int, dice *rand.Rand) draft {
	d := draft{n: n, currency: "usd", unit: 1, method: "pm_" + canary + "Card", ends: order.Paid}
	switch dice.IntN(10) {
	case 0, 1, 2:
		d.currency = "eur"
	case 3:
		d.currency, d.unit = "isk", 100 // in hundredths that end in 00
	}
	switch dice.IntN(40) {
	case 0, 1:
		d.method, d.ends = "pm_card_chargeDeclined", order.Declined
	case 2:
		d.method, d.ends = "pm_card_authenticationRequired", order.ActionRequired
	}
	d.quantity, d.unit = 1+dice.Int64N(5), d.unit*(100+dice.Int64N(9_900))
	return d
}

func (d draft) message() message {
	return message{
		order: d.n, body: d.body(), total: order.Money{Amount: d.quantity * d.unit, Currency: d.currency}, ends: d.ends,
	}
}

func (d draft) body() string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"%s-%d","currency":%q,"lines":[{"sku":"TSHIRT-M","quantity":%d,"unitAmount":%d}],`+
		`"payment":{"customer":"cus_%s%d","method":%q}}`,
		orderID(d.n), canary, d.n, d.currency, d.quantity, d.unit, canary, d.n, d.method)
}

// malformed spoils an order in a way that a decoder has to see. Some are still an order to a reader that is not strict.
func malformed(dice *rand.Rand, body string) string {
	switch dice.IntN(6) {
	case 0:
		return body[:len(body)/2]
	case 1: // a discount that the reader does not know
		return strings.Replace(body, `"currency"`, `"discount":500,"currency"`, 1)
	case 2: // which of two amounts is meant?
		return strings.Replace(body, `"unitAmount"`, `"unitAmount":100,"UNITAMOUNT"`, 1)
	case 3:
		return strings.Replace(body, `"unitAmount":`, `"unitAmount":-`, 1)
	case 4: // two orders in one body
		return body + body
	}
	return strings.Replace(body, `"lines"`, `"articles"`, 1)
}

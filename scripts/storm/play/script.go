package play

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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

// message is one message of the script. Its name stays with it through redrives, which give it new ids.
type message struct {
	order   int
	number  int // among the messages of its order
	content content
	body    string
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
		return []message{{n, 0, invalid, malformed(dice, valid(n, dice))}}
	}
	body := valid(n, dice)
	all := []message{{order: n, body: body}}
	if roll < 0.05 {
		all = append(all, message{order: n, content: other, body: strings.Replace(body, `"quantity":`, `"quantity":1`, 1)})
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

// valid is an order; most cards are good.
func valid(n int, dice *rand.Rand) string {
	currency, unit := "usd", int64(1)
	switch dice.IntN(10) {
	case 0, 1, 2:
		currency = "eur"
	case 3:
		currency, unit = "isk", 100 // in hundredths that end in 00
	}
	method := "pm_" + canary + "Card"
	switch dice.IntN(40) {
	case 0, 1:
		method = "pm_card_chargeDeclined"
	case 2:
		method = "pm_card_authenticationRequired"
	}
	return fmt.Sprintf(`{"orderId":%q,"customerId":"%s-%d","currency":%q,"lines":[{"sku":"TSHIRT-M","quantity":%d,"unitAmount":%d}],`+
		`"payment":{"customer":"cus_%s%d","method":%q}}`,
		orderID(n), canary, n, currency, 1+dice.IntN(5), unit*(100+dice.Int64N(9_900)), canary, n, method)
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

package run

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"orderonce/domain/order"
)

// Workload is what the producers send. The same Workload always sends the same messages.
type Workload struct {
	Seed   uint64
	Orders int
	// Later means that some orders are paid by bank, which takes days, and that people and
	// banks act after the messages: see fate.
	Later bool
	// Refunded is the share of the orders that get refunds. It needs Later.
	Refunded float64
}

// duplicates is the share of duplicated messages: a third each delivered twice in a
// batch, delivered to two instances at once, and sent twice by the producer.
const duplicates = 0.3

type content int

const (
	original    content = iota
	conflicting         // the same order id with another amount
	invalid             // not an order, or one that must not be charged
)

// message is one message of the workload. Its name survives a redrive, which gives it a
// new id.
type message struct {
	order   int
	number  int // among the messages of its order
	content content
	body    string
	total   order.Money  // what may be charged
	want    order.Status // the status that its card leads to
	waits   bool         // for the customer or the bank, at first
}

func (m message) name() string { return strconv.Itoa(m.order) + "." + strconv.Itoa(m.number) }

// AttrName is the message attribute that carries a message's name.
const AttrName = "storm-message"

// canary is in every personal value, so that a leak into the log is found by one search.
const canary = "canary"

func orderID(n int) string { return fmt.Sprintf("storm-%06d", n) }

// numberOf is the inverse of orderID. It returns -1 for any other id.
func numberOf(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "storm-"))
	if err != nil || orderID(n) != id {
		return -1
	}
	return n
}

// numberOf returns the number of an order of the workload, or -1.
func (s Workload) numberOf(id string) int {
	n := numberOf(id)
	if n >= s.Orders {
		return -1
	}
	return n
}

// lastDay returns the number of the first order that is sent on the last day: the last
// tenth are.
func (s Workload) lastDay() int { return s.Orders - s.Orders/10 }

// messages returns all messages of one order. Of 100 orders, about two are invalid and
// three have a conflicting duplicate.
func (s Workload) messages(n int) []message {
	dice := s.dice(messageDice, n)
	roll := dice.Float64()
	if roll < 0.02 {
		return []message{{order: n, content: invalid, body: malformed(dice, newDraft(n, dice).body())}}
	}
	d := newDraft(n, dice)
	if s.Later {
		d.live(s.fate(n))
		d.sku = s.sku(n)
	}
	all := []message{d.message()}
	if roll < 0.05 {
		d.quantity += 10
		all = append(all, d.message())
		all[1].content = conflicting
	}
	if dice.Float64() < duplicates/3 {
		all = append(all, all[0])
	}
	for i := range all {
		all[i].number = i
	}
	return all
}

type draft struct {
	n              int
	currency       order.Currency
	method         string
	want           order.Status
	waits          bool
	sku            string
	quantity, unit int64
}

// newDraft returns a random valid order. Most cards succeed.
func newDraft(n int, dice *rand.Rand) draft {
	d := draft{
		n: n, currency: "usd", unit: 1, sku: "TSHIRT-M", method: "pm_" + canary + "Card", want: order.Paid,
	}
	switch dice.IntN(10) {
	case 0, 1, 2:
		d.currency = "eur"
	case 3:
		d.currency, d.unit = "isk", 100 // in hundredths that end in 00
	}
	switch dice.IntN(40) {
	case 0, 1:
		d.method, d.want = "pm_card_chargeDeclined", order.Declined
	case 2:
		d.method, d.want = "pm_card_authenticationRequired", order.ActionRequired
	}
	d.quantity, d.unit = 1+dice.Int64N(5), d.unit*(100+dice.Int64N(9_900))
	return d
}

func (d draft) message() message {
	return message{
		order: d.n, body: d.body(), want: d.want, waits: d.waits,
		total: order.Money{Amount: d.quantity * d.unit, Currency: d.currency},
	}
}

func (d draft) body() string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"%[2]s-%[3]d","currency":%[4]q,`+
		`"lines":[{"sku":%[8]q,"quantity":%[5]d,"unitAmount":%[6]d}],`+
		`"payment":{"customer":"cus_%[2]s%[3]d","method":%[7]q}}`,
		orderID(d.n), canary, d.n, d.currency, d.quantity, d.unit, d.method, d.sku)
}

// malformed makes the body invalid. A lenient decoder accepts some of the results.
func malformed(dice *rand.Rand, body string) string {
	switch dice.IntN(6) {
	case 0:
		return body[:len(body)/2]
	case 1: // unknown field
		return strings.Replace(body, `"currency"`, `"discount":500,"currency"`, 1)
	case 2: // duplicate field
		return strings.Replace(body, `"unitAmount"`, `"unitAmount":100,"UNITAMOUNT"`, 1)
	case 3:
		return strings.Replace(body, `"unitAmount":`, `"unitAmount":-`, 1)
	case 4: // trailing data
		return body + body
	}
	return strings.Replace(body, `"lines"`, `"articles"`, 1)
}

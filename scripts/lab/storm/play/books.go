package play

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// Count is what became of the orders. All but Orders, Messages and the charges count orders.
type Count struct {
	Orders, Messages int // of the script; Orders without those that are none
	ChargedTwice     int // or more often
	WrongAmount      int // charged another sum than was sent or than its row says, or two different sums, or although it is no order
	Lost             int // its messages are gone and nothing is settled
	Stuck            int // its messages are still there and nothing is settled, after everything had its retries
	Swallowed        int // other content under the same id was acknowledged in silence
	BooksDiffer      int // the table says paid and Stripe does not, or the other way round
	ToldWrong        int // the table's last word is not what the bank has said to this card
	Settled          int
	Parked           int // messages in the dead-letter queue, with a reason
	Extra            int // deliveries beyond one for each message that the queue stored
	ExtraCharges     int
}

// Wrong is the number of things that must not be.
func (c Count) Wrong() int {
	return c.ChargedTwice + c.WrongAmount + c.Lost + c.Stuck + c.Swallowed + c.BooksDiffer + c.ToldWrong
}

// books are what is known at the end: of each order only as long as it is looked at, but for the ledger and the dead letters.
type books struct {
	script  Script
	decoder *sqs.Decoder
	ledger  map[string][]stripetest.Charge // by order id, declines as well
	intent  func(id string) stripetest.Intent
	dead    map[string]sqstest.Message // by name
	left    sqstest.Counts
	ours    bool   // the table is ours: the invariants are checked
	seen    []bool // rows found, by the order's number
	count   Count
	checks  []system.Check
}

// Claims of docs/design.md that are checked here as well, or only here.
const (
	agree   = "table and Stripe's ledger agree, both ways"
	settles = "with faults off, everything settles"
	amounts = "the charge is the claimed amount and currency"
	truth   = "nobody is told declined who was charged or only has to confirm"
	silence = "no customer, card or key in any log line"
)

// chunk is how many orders are compared at once.
const chunk = 1000

// audit closes the books of a system at rest. The invariants are those of our own table; for another handler there are none.
func audit(ctx context.Context, s *system.System, h Handler, script Script, leaks []string) (Count, []system.Check, error) {
	dead, err := s.Dead()
	if err != nil {
		return Count{}, nil, err
	}
	b := newBooks(script, dead)
	b.left, b.ours = s.Counts(), h.Rows == nil
	s.Stripe.Machine(func(m *stripetest.Machine) { b.enterLedger(m.Ledger()) })
	b.intent = func(id string) (i stripetest.Intent) {
		s.Stripe.Machine(func(m *stripetest.Machine) {
			if found := m.Intent(id); found != nil {
				i = *found
			}
		})
		return i
	}
	read := h.Rows
	if b.ours {
		read = ourRows
	}
	err = b.close(read(ctx, s), leaks)
	return b.count, b.checks, err
}

// close compares everything with everything. leaks are log lines with something in them that must not be there.
func (b *books) close(table iter.Seq2[Row, error], leaks []string) error {
	if err := b.compare(table); err != nil {
		return err
	}
	b.breaks("I13", silence, leaks...) // the orders are compared chunk by chunk, without the log
	return nil
}

// newBooks are books with nothing but the dead letters in them.
func newBooks(script Script, dead []sqstest.Message) *books {
	b := &books{
		script: script, decoder: sqs.NewDecoder(), ledger: map[string][]stripetest.Charge{}, dead: map[string]sqstest.Message{},
		seen: make([]bool, script.Orders),
	}
	for _, m := range dead {
		name := m.Attributes[AttrName].Text
		if before, twice := b.dead[name]; !twice || before.Attributes[sqs.AttrReason].Text != "" {
			b.dead[name] = m // the one without a reason, if there are two
		}
	}
	for _, m := range b.dead {
		if m.Attributes[sqs.AttrReason].Text != "" {
			b.count.Parked++
		}
	}
	return b
}

func (b *books) enterLedger(ledger []stripetest.Charge) {
	for _, c := range ledger {
		b.ledger[c.OrderID] = append(b.ledger[c.OrderID], c)
		if b.numberOf(c.OrderID) < 0 {
			b.breaks("I4", agree, fmt.Sprintf("a charge through %s is of order %q, which nobody sent", c.Intent, c.OrderID))
		}
	}
}

// numberOf is the number of an order of the script, or -1.
func (b *books) numberOf(id string) int {
	n := numberOf(id)
	if n >= b.script.Orders {
		return -1
	}
	return n
}

// compare walks the table once, and then the orders that it does not hold.
func (b *books) compare(table iter.Seq2[Row, error]) error {
	var rows []Row
	for row, err := range table {
		if err != nil {
			return err
		}
		if rows = append(rows, row); len(rows) == chunk {
			b.take(rows)
			rows = rows[:0]
		}
	}
	b.take(rows)
	rows = rows[:0]
	for n, seen := range b.seen {
		if !seen {
			rows = append(rows, Row{OrderID: orderID(n)})
		}
	}
	for some := range slices.Chunk(rows, chunk) {
		b.take(some)
	}
	return nil
}

// take judges some orders with their rows.
func (b *books) take(rows []Row) {
	one := system.Books{
		Records: map[order.ID]order.Record{}, Charges: map[order.ID][]stripetest.Charge{},
		Intents: map[string]stripetest.Intent{}, Parked: map[string]sqstest.Message{}, Left: b.left,
	}
	for _, row := range rows {
		n := b.numberOf(row.OrderID)
		if n < 0 || b.seen[n] {
			b.breaks("I4", agree, fmt.Sprintf("row %q is of an order that nobody sent, or there twice", row.OrderID))
			continue
		}
		b.seen[n] = true
		messages, charges := b.script.messages(n), b.ledger[row.OrderID]
		before := b.count
		b.judge(row, messages, charges)
		if !b.ours {
			continue
		}
		b.enter(&one, row, messages, charges)
		if b.count.Stuck > before.Stuck {
			b.breaks("I11", settles, fmt.Sprintf("order %s is not settled, and its message is parked", row.OrderID))
		}
		if b.count.WrongAmount > before.WrongAmount {
			b.breaks("I2", amounts, fmt.Sprintf("order %s was charged %v, and not what was sent", row.OrderID, sums(charges)))
		}
		if b.count.ToldWrong > before.ToldWrong {
			b.breaks("I15", truth, fmt.Sprintf("order %s is %s, and the bank's word on its card is %s", row.OrderID, row.Status, messages[0].ends))
		}
	}
	if b.ours {
		for _, c := range one.Audit() {
			b.breaks(c.ID, c.Claim, c.Broken...)
		}
		b.breaks("I11", settles)
	}
}

// enter writes an order into the books that system knows how to audit.
func (b *books) enter(to *system.Books, row Row, messages []message, charges []stripetest.Charge) {
	for _, m := range messages {
		to.Posted = append(to.Posted, system.NewPosted(b.decoder, m.body, m.name()))
		if dead, parked := b.dead[m.name()]; parked {
			to.Parked[m.name()] = dead
		}
	}
	if row.Record != nil {
		to.Records[row.Record.OrderID] = *row.Record
		to.Intents[string(row.Record.Intent)] = b.intent(string(row.Record.Intent))
	}
	for _, c := range charges {
		if c.Outcome == stripetest.Charged {
			to.Charges[order.ID(row.OrderID)] = append(to.Charges[order.ID(row.OrderID)], c)
		}
	}
}

// judge counts one order, for whichever handler.
func (b *books) judge(row Row, messages []message, ledger []stripetest.Charge) {
	b.count.Messages += len(messages)
	charges := slices.DeleteFunc(slices.Clone(ledger), func(c stripetest.Charge) bool { return c.Outcome != stripetest.Charged })
	left := b.leftOf(messages)
	tell := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	if messages[0].content == invalid {
		tell(&b.count.WrongAmount, len(charges) > 0)
		tell(&b.count.Lost, len(charges) == 0 && left[invalid] == 0)
		return
	}
	b.count.Orders++
	b.count.ExtraCharges += max(0, len(charges)-1)
	tell(&b.count.ChargedTwice, len(charges) > 1)
	tell(&b.count.WrongAmount, wrongAmount(row, messages, charges))
	tell(&b.count.Settled, row.Settled)
	tell(&b.count.Lost, !row.Settled && left[original]+left[other] == 0)
	tell(&b.count.Stuck, !row.Settled && left[original]+left[other] > 0)
	tell(&b.count.BooksDiffer, row.Settled && (row.Status == order.Paid) != (len(charges) > 0))
	tell(&b.count.ToldWrong, row.Settled && row.Status != messages[0].ends)
	tell(&b.count.Swallowed, swallowed(row, messages, ledger, left))
}

// leftOf counts the messages of an order that are still in a queue, by content.
func (b *books) leftOf(messages []message) (left [3]int) {
	for _, m := range messages {
		if _, dead := b.dead[m.name()]; dead {
			left[m.content]++
		}
	}
	return left
}

// wrongAmount reports whether a charge is of no content that was sent, of another one than the first charge, or not the row's.
func wrongAmount(row Row, messages []message, charges []stripetest.Charge) bool {
	return slices.ContainsFunc(charges, func(c stripetest.Charge) bool {
		sent := func(m message) bool { return m.total == totalOf(c) }
		return !slices.ContainsFunc(messages, sent) || c.Amount != charges[0].Amount || row.Amount != 0 && c.Amount != row.Amount
	})
}

func totalOf(c stripetest.Charge) order.Money {
	return order.Money{Amount: c.Amount, Currency: order.Currency(c.Currency)}
}

func sums(charges []stripetest.Charge) (all []order.Money) {
	for _, c := range charges {
		all = append(all, totalOf(c))
	}
	return all
}

// swallowed reports whether a content of an order was neither tried at Stripe nor kept for a person.
func swallowed(row Row, messages []message, ledger []stripetest.Charge, left [3]int) bool {
	if !row.Settled || len(messages) < 2 || messages[1].content != other {
		return false
	}
	for _, m := range messages[:2] {
		tried := func(c stripetest.Charge) bool { return totalOf(c) == m.total }
		if left[m.content] == 0 && !slices.ContainsFunc(ledger, tried) && row.Amount != m.total.Amount {
			return true
		}
	}
	return false
}

// breaks adds what is broken, perhaps nothing, to the check of an invariant. Another handler has promised none.
func (b *books) breaks(id, claim string, broken ...string) {
	if !b.ours {
		return
	}
	at := slices.IndexFunc(b.checks, func(c system.Check) bool { return c.ID == id })
	if at < 0 {
		at = len(b.checks)
		b.checks = append(b.checks, system.Check{ID: id, Claim: claim})
	}
	b.checks[at].Broken = append(b.checks[at].Broken, broken...)
}

package play

import (
	"context"
	"fmt"
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
	WrongAmount      int // charged another sum than its row says, or two different sums, or charged although it is no order
	Lost             int // its messages are gone and nothing is settled
	Stuck            int // its messages are still there and nothing is settled, after everything had its retries
	Swallowed        int // other content under the same id was acknowledged in silence
	BooksDiffer      int // the table says paid and Stripe does not, or the other way round
	Settled          int
	Parked           int // messages in the dead-letter queue
	ExtraCharges     int
}

// Wrong is the number of things that must not be.
func (c Count) Wrong() int {
	return c.ChargedTwice + c.WrongAmount + c.Lost + c.Stuck + c.Swallowed + c.BooksDiffer
}

// books are what is known at the end: of each order only as long as it is looked at, but for the ledger and the dead letters.
type books struct {
	script  Script
	decoder *sqs.Decoder
	ledger  map[string][]stripetest.Charge // by order id, declines as well
	intent  func(id string) stripetest.Intent
	dead    map[string]sqstest.Message // by name
	left    sqstest.Counts
	seen    []bool // rows found, by the order's number
	count   Count
	checks  []system.Check
}

// Claims of docs/design.md that are checked here as well, or only here.
const (
	agree   = "table and Stripe's ledger agree, both ways"
	settles = "with faults off, everything settles"
)

// chunk is how many orders are compared at once.
const chunk = 1000

// audit closes the books of a system at rest. The invariants are those of our own table; for another handler there are none.
func audit(ctx context.Context, s *system.System, h Handler, script Script) (Count, []system.Check, error) {
	b := &books{
		script: script, decoder: sqs.NewDecoder(), ledger: map[string][]stripetest.Charge{}, dead: map[string]sqstest.Message{},
		left: s.Counts(), seen: make([]bool, script.Orders),
	}
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, c := range m.Ledger() {
			b.ledger[c.OrderID] = append(b.ledger[c.OrderID], c)
			if n := numberOf(c.OrderID); n < 0 || n >= script.Orders {
				b.breaks("I4", agree, fmt.Sprintf("a charge through %s is of order %q, which nobody sent", c.Intent, c.OrderID))
			}
		}
	})
	b.intent = func(id string) (i stripetest.Intent) {
		s.Stripe.Machine(func(m *stripetest.Machine) {
			if found := m.Intent(id); found != nil {
				i = *found
			}
		})
		return i
	}
	dead, err := s.Dead()
	if err != nil {
		return Count{}, nil, err
	}
	for _, m := range dead {
		name := m.Attributes[AttrName].Text
		if before, twice := b.dead[name]; !twice || before.Attributes[sqs.AttrReason].Text != "" {
			b.dead[name] = m // the one without a reason, if there are two
		}
	}
	b.count.Parked = len(b.dead)
	if err := b.compare(ctx, s, h); err != nil {
		return Count{}, nil, err
	}
	if h.Rows != nil {
		return b.count, nil, nil
	}
	return b.count, b.checks, nil
}

// compare walks the table once, and then the orders that it does not hold.
func (b *books) compare(ctx context.Context, s *system.System, h Handler) error {
	var rows []Row
	read := h.Rows
	if read == nil {
		read = ourRows
	}
	for row, err := range read(ctx, s) {
		if err != nil {
			return err
		}
		if rows = append(rows, row); len(rows) == chunk {
			b.take(rows, h.Rows == nil)
			rows = rows[:0]
		}
	}
	b.take(rows, h.Rows == nil)
	rows = rows[:0]
	for n, seen := range b.seen {
		if !seen {
			rows = append(rows, Row{OrderID: orderID(n)})
		}
	}
	for some := range slices.Chunk(rows, chunk) {
		b.take(some, h.Rows == nil)
	}
	return nil
}

// take judges some orders with their rows.
func (b *books) take(rows []Row, ours bool) {
	one := system.Books{
		Records: map[order.ID]order.Record{}, Charges: map[order.ID][]stripetest.Charge{},
		Intents: map[string]stripetest.Intent{}, Parked: map[string]sqstest.Message{}, Left: b.left,
	}
	for _, row := range rows {
		n := numberOf(row.OrderID)
		if n < 0 || n >= len(b.seen) || b.seen[n] {
			b.breaks("I4", agree, fmt.Sprintf("row %q is of an order that nobody sent, or there twice", row.OrderID))
			continue
		}
		b.seen[n] = true
		messages := b.script.messages(n)
		charges := b.ledger[row.OrderID]
		stuck := b.count.Stuck
		b.judge(row, messages, charges)
		if !ours {
			continue
		}
		b.enter(&one, row, messages, charges)
		if b.count.Stuck > stuck {
			b.breaks("I11", settles, fmt.Sprintf("order %s is not settled, and its message is parked", row.OrderID))
		}
	}
	if ours {
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
	tell(&b.count.WrongAmount, b.wrongAmount(row, charges))
	tell(&b.count.Settled, row.Settled)
	tell(&b.count.Lost, !row.Settled && left[original]+left[other] == 0)
	tell(&b.count.Stuck, !row.Settled && left[original]+left[other] > 0)
	tell(&b.count.BooksDiffer, row.Settled && row.Paid != (len(charges) > 0))
	tell(&b.count.Swallowed, b.swallowed(row, messages, ledger, left))
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

func (b *books) wrongAmount(row Row, charges []stripetest.Charge) bool {
	return slices.ContainsFunc(charges, func(c stripetest.Charge) bool {
		return c.Amount != charges[0].Amount || row.Amount != 0 && c.Amount != row.Amount
	})
}

// swallowed reports whether a content of an order was neither tried at Stripe nor kept for a person.
func (b *books) swallowed(row Row, messages []message, ledger []stripetest.Charge, left [3]int) bool {
	if !row.Settled || len(messages) < 2 || messages[1].content != other {
		return false
	}
	for _, m := range messages[:2] {
		o, _ := b.decoder.Decode(m.body)
		tried := func(c stripetest.Charge) bool { return c.Amount == o.Total().Amount }
		if left[m.content] == 0 && !slices.ContainsFunc(ledger, tried) && row.Amount != o.Total().Amount {
			return true
		}
	}
	return false
}

// breaks adds what is broken, perhaps nothing, to the check of an invariant.
func (b *books) breaks(id, claim string, broken ...string) {
	at := slices.IndexFunc(b.checks, func(c system.Check) bool { return c.ID == id })
	if at < 0 {
		at = len(b.checks)
		b.checks = append(b.checks, system.Check{ID: id, Claim: claim})
	}
	b.checks[at].Broken = append(b.checks[at].Broken, broken...)
}

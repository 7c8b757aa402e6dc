package run

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
)

// Count is the result of a storm. Fields count orders unless they say otherwise. A charge
// of an invalid order counts as WrongAmount.
type Count struct {
	Orders, Messages int // of the workload; Orders without the invalid ones
	ChargedTwice     int // or more often
	WrongAmount      int // the amount was not sent, or differs from the row or an earlier charge
	Lost             int // not settled, and no message is left
	Stuck            int // not settled after all retries, and a message is left
	ConflictLost     int // a conflicting duplicate was deleted, neither charged nor parked
	LedgerMismatch   int // the row says paid and Stripe does not, or the other way round
	WrongStatus      int // the row's status is not the result of the card
	Settled          int
	Parked           int // messages in the dead-letter queue that have a reason
	Extra            int // deliveries beyond one for each message sent
	ExtraCharges     int
}

// Wrong returns the number of errors.
func (c Count) Wrong() int {
	return c.ChargedTwice + c.WrongAmount + c.Lost + c.Stuck + c.ConflictLost + c.LedgerMismatch + c.WrongStatus
}

// audit compares the workload, the table, Stripe's ledger and the queues at the end of a
// storm.
type audit struct {
	workload Workload
	decoder  *jobs.Decoder
	ledger   map[string][]stripetest.Charge // by order id, with declines
	refunds  map[string][]invariants.Refund // of Stripe, by order id
	intent   func(id order.IntentID) invariants.Intent
	dead     map[string]sqstest.Message // by name
	left     int                        // messages in the order queue
	product  bool                       // the handler is the product: the invariants are checked
	seen     []bool                     // whether a row was found, by order number
	count    Count
	back     Refunds
	parts    *ofParts // nil if there are none
	checks   []invariants.Result
}

// chunk is how many orders are checked at once.
const chunk = 1000

// audit audits a system at rest. It checks the invariants of the product only: no other
// handler promises them.
func (st *storm) audit(ctx context.Context, s *system.System, out *Outcome) error {
	dead, err := s.Dead()
	if err != nil {
		return err
	}
	b := newAudit(st.Workload, dead)
	b.left, b.product = s.Waiting(), st.handler.Rows == nil
	s.Stripe.Machine(func(m *stripetest.Machine) {
		b.addCharges(m.Ledger())
		b.addRefunds(m.Refunds())
	})
	b.intent = func(id order.IntentID) (i invariants.Intent) {
		s.Stripe.Machine(func(m *stripetest.Machine) {
			if found := m.Intent(string(id)); found != nil {
				i = system.IntentOf(found)
			}
		})
		return i
	}
	read := st.handler.Rows
	if b.product {
		read = productRows
	}
	if st.tool != "" {
		if out.Books, err = st.auditByTool(ctx, s); err != nil {
			return err
		}
		b.report("I4", out.Books.Findings...)
	}
	if err := b.readParts(ctx, s); err != nil {
		return err
	}
	err = b.check(read(ctx, s), st.later.left, st.log.leaked())
	out.Count, out.Refunds, out.Checks, out.Parts = b.count, b.back, b.checks, st.partsOutcome(b)
	return err
}

// check runs every check. left are orders that waited too long during the storm, leaks
// log lines that contain personal data or a key.
func (b *audit) check(table iter.Seq2[Row, error], left, leaks []string) error {
	if err := b.checkTable(table); err != nil {
		return err
	}
	b.checkStock()
	b.report("I17", left...)
	b.report("I13", leaks...)
	slices.SortFunc(b.checks, func(x, y invariants.Result) int { // I2 before I11
		return cmp.Or(cmp.Compare(len(x.ID), len(y.ID)), cmp.Compare(x.ID, y.ID))
	})
	return nil
}

// newAudit returns an audit with the dead letters.
func newAudit(workload Workload, dead []sqstest.Message) *audit {
	b := &audit{
		workload: workload, decoder: jobs.NewDecoder(),
		ledger: map[string][]stripetest.Charge{}, refunds: map[string][]invariants.Refund{},
		dead: map[string]sqstest.Message{},
		seen: make([]bool, workload.Orders),
	}
	for _, m := range dead {
		name := nameOf(b.decoder, m)
		if before, twice := b.dead[name]; !twice || before.Attributes[sqs.AttrReason].Text != "" {
			b.dead[name] = m // if there are two, the one without a reason
		}
	}
	for _, m := range b.dead {
		if m.Attributes[sqs.AttrReason].Text != "" {
			b.count.Parked++
		}
	}
	return b
}

func (b *audit) addCharges(ledger []stripetest.Charge) {
	for _, c := range ledger {
		b.ledger[c.OrderID] = append(b.ledger[c.OrderID], c)
		if b.workload.numberOf(c.OrderID) < 0 {
			b.report("I4", fmt.Sprintf("a charge through %s is for the unknown order %q", c.Intent, c.OrderID))
		}
	}
}

// checkTable checks every row of the table, and then the orders without a row.
func (b *audit) checkTable(table iter.Seq2[Row, error]) error {
	var rows []Row
	for row, err := range table {
		if err != nil {
			return err
		}
		if rows = append(rows, row); len(rows) == chunk {
			if err := b.checkRows(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	if err := b.checkRows(rows); err != nil {
		return err
	}
	rows = rows[:0]
	for n, seen := range b.seen {
		if !seen {
			rows = append(rows, Row{OrderID: orderID(n)})
		}
	}
	for some := range slices.Chunk(rows, chunk) {
		if err := b.checkRows(some); err != nil {
			return err
		}
	}
	return nil
}

// checkRows checks some orders with their rows.
func (b *audit) checkRows(rows []Row) error {
	one := invariants.Books{
		Orders: map[order.ID]invariants.Order{}, Charges: map[order.ID][]invariants.Charge{},
		Intents: map[order.IntentID]invariants.Intent{}, Refunds: map[order.ID][]invariants.Refund{},
		Parked: map[string]invariants.DeadLetter{}, Left: b.left, Ended: true,
	}
	for _, row := range rows {
		n := b.workload.numberOf(row.OrderID)
		if n < 0 || b.seen[n] {
			b.report("I4", fmt.Sprintf("row %q is of an unknown order, or a duplicate", row.OrderID))
			continue
		}
		b.seen[n] = true
		messages, charges := b.workload.messages(n), b.ledger[row.OrderID]
		before := b.count
		b.countOrder(row, messages, charges)
		if !b.product {
			continue
		}
		if err := b.addOrder(&one, row, messages, charges); err != nil {
			return err
		}
		b.countRefunds(b.workload.refunds(n), row)
		if b.count.WrongAmount > before.WrongAmount {
			b.report("I2", fmt.Sprintf("order %s was charged %v, which was not sent", row.OrderID, sums(charges)))
		}
		if b.count.WrongStatus > before.WrongStatus {
			b.report("I15",
				fmt.Sprintf("wrong status: order %s is %s, want %s", row.OrderID, row.Status, messages[0].want))
		}
	}
	if b.product {
		for _, c := range one.Audit() {
			b.report(c.ID, c.Broken...)
		}
	}
	return nil
}

// addOrder adds an order to what package system audits.
func (b *audit) addOrder(
	to *invariants.Books, row Row, messages []message, charges []stripetest.Charge,
) error {
	id, sent := order.ID(row.OrderID), len(to.Messages)
	add := func(name, body string) {
		to.Messages = append(to.Messages, invariants.NewMessage(b.decoder, body, name))
		if dead, parked := b.dead[name]; parked {
			_, to.Parked[name] = system.DeadLetterOf(dead)
		}
	}
	for _, m := range messages {
		add(m.name(), m.body)
	}
	for _, m := range b.workload.refunds(b.workload.numberOf(row.OrderID)) {
		add(m.name(), m.body())
	}
	if row.Order != nil {
		to.Orders[id], to.Intents[row.Order.Intent] = *row.Order, b.intent(row.Order.Intent)
	}
	for _, c := range charges {
		if c.Outcome == stripetest.Charged {
			to.Charges[id] = append(to.Charges[id], system.ChargeOf(c))
		}
	}
	if made := b.refunds[row.OrderID]; made != nil {
		to.Refunds[id] = made
	}
	if b.parts != nil {
		b.parts.stocked.Messages = append(b.parts.stocked.Messages, to.Messages[sent:]...)
	}
	return b.addParts(to, id)
}

// countOrder counts one order, for any handler.
func (b *audit) countOrder(row Row, messages []message, ledger []stripetest.Charge) {
	b.count.Messages += len(messages)
	charges := slices.DeleteFunc(slices.Clone(ledger),
		func(c stripetest.Charge) bool { return c.Outcome != stripetest.Charged })
	left := b.deadLetters(messages)
	add := func(n *int, condition bool) {
		if condition {
			*n++
		}
	}
	if messages[0].content == invalid {
		add(&b.count.WrongAmount, len(charges) > 0)
		add(&b.count.Lost, len(charges) == 0 && left[invalid] == 0)
		return
	}
	b.count.Orders++
	b.count.ExtraCharges += max(0, len(charges)-1)
	add(&b.count.ChargedTwice, len(charges) > 1)
	add(&b.count.WrongAmount, wrongAmount(row, messages, charges))
	add(&b.count.Settled, row.Settled)
	add(&b.count.Lost, !row.Settled && left[original]+left[conflicting] == 0)
	add(&b.count.Stuck, !row.Settled && left[original]+left[conflicting] > 0)
	add(&b.count.LedgerMismatch, row.Settled && row.Status.Charged() != (len(charges) > 0))
	add(&b.count.WrongStatus, row.Settled && !b.workload.allows(messages[0], row.Status))
	add(&b.count.ConflictLost, conflictLost(row, messages, ledger, left))
}

// nameOf returns the name of a dead letter. One that came by HTTP has that of its order's
// only message.
func nameOf(d *jobs.Decoder, m sqstest.Message) string {
	if a, named := m.Attributes[AttrName]; named {
		return a.Text
	}
	job, _ := d.Decode(m.Body)
	return message{order: numberOf(string(job.OrderID()))}.name()
}

// allows reports whether an order may end in a status: that of its card, also after
// refunds; canceled if an operator cancels it, or if it was declined, because then its
// stock is free again; and out of stock if there is not enough.
func (s Workload) allows(m message, status order.Status) bool {
	return status == m.want || status.Charged() && m.want == order.Paid ||
		status == order.Canceled && (s.cancels(m.order) != (moment{}) || s.Later && m.want == order.Declined) ||
		status == order.OutOfStock && s.scarce(m.order)
}

// deadLetters counts the dead letters of an order, by content.
func (b *audit) deadLetters(messages []message) (left [3]int) {
	for _, m := range messages {
		if _, dead := b.dead[m.name()]; dead {
			left[m.content]++
		}
	}
	return left
}

// wrongAmount reports whether a charge differs from every message of the order, from the
// first charge, or from the row.
func wrongAmount(row Row, messages []message, charges []stripetest.Charge) bool {
	return slices.ContainsFunc(charges, func(c stripetest.Charge) bool {
		sent := func(m message) bool { return m.total == totalOf(c) }
		return !slices.ContainsFunc(messages, sent) || c.Amount != charges[0].Amount ||
			row.Amount != 0 && c.Amount != row.Amount
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

// conflictLost reports whether one of two conflicting messages was neither sent to Stripe
// nor left in a queue.
func conflictLost(row Row, messages []message, ledger []stripetest.Charge, left [3]int) bool {
	if !row.Settled || len(messages) < 2 || messages[1].content != conflicting {
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

// report adds violations, or none, to the result of an invariant. It ignores other
// handlers than the product.
func (b *audit) report(id string, broken ...string) {
	if !b.product {
		return
	}
	at := slices.IndexFunc(b.checks, func(r invariants.Result) bool { return r.ID == id })
	if at < 0 {
		all := invariants.All()
		n := slices.IndexFunc(all, func(i invariants.Invariant) bool { return i.ID == id })
		at, b.checks = len(b.checks), append(b.checks, invariants.Result{ID: id, Claim: all[n].Claim})
	}
	b.checks[at].Broken = append(b.checks[at].Broken, broken...)
}

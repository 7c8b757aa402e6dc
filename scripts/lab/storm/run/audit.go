package run

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
)

// audit compares the workload, the table, Stripe's ledger and the dead letters at the end
// of a storm. Of the product it also checks the invariants: no other handler promises
// them.
type audit struct {
	workload Workload
	rows     map[string]Row
	ledger   map[string][]stripetest.Charge // by order id, with declines
	dead     map[string]sqstest.Message     // by name
	books    *invariants.Books              // nil unless the handler is the product
	figures  Figures
	checks   []invariants.Result
}

func newAudit(
	workload Workload, table iter.Seq2[Row, error], ledger []stripetest.Charge, dead []sqstest.Message,
) (*audit, error) {
	a := &audit{
		workload: workload, rows: map[string]Row{}, ledger: map[string][]stripetest.Charge{},
		dead: map[string]sqstest.Message{}, figures: Figures{},
	}
	for row, err := range table {
		if err != nil {
			return nil, err
		}
		a.rows[row.OrderID] = row
	}
	for _, c := range ledger {
		a.ledger[c.OrderID] = append(a.ledger[c.OrderID], c)
	}
	decoder := jobs.NewDecoder()
	for _, m := range dead {
		name := nameOf(decoder, m)
		if before, twice := a.dead[name]; !twice || before.Attributes[sqs.AttrReason].Text != "" {
			a.dead[name] = m // if there are two, the one without a reason
		}
	}
	for _, m := range a.dead {
		a.figures.countIf(Parked, m.Attributes[sqs.AttrReason].Text != "")
	}
	return a, nil
}

func (st *storm) audit(ctx context.Context, s *system.System, out *Outcome) error {
	dead, err := s.Dead()
	if err != nil {
		return err
	}
	read := st.handler.Rows
	if read == nil {
		read = productRows
	}
	var ledger []stripetest.Charge
	s.Stripe.Machine(func(m *stripetest.Machine) { ledger = m.Ledger() })
	a, err := newAudit(st.Workload, read(ctx, s), ledger, dead)
	if err != nil {
		return err
	}
	if st.handler.Rows == nil {
		books := a.newBooks()
		if err := s.Fill(ctx, books); err != nil {
			return err
		}
		a.addBooks(books)
	}
	a.figures[DynamoDBCalls], a.figures[StripeCalls] = s.Proxy.Total(), s.Stripe.Arrived()
	if st.tool != "" {
		findings, err := st.auditByTool(ctx, s, a.figures)
		if err != nil {
			return err
		}
		wrong, err := st.verifyByTool(ctx, s)
		if err != nil {
			return err
		}
		a.report("I4", append(findings, wrong...)...)
		a.figures[Webhooks] = len(s.Events.Sent())
	}
	a.check(st.left, st.log.leaked())
	out.Figures, out.Checks = a.figures, a.checks
	maps.Copy(out.Figures, st.tally.all())
	out.Figures[Extra] = out.Figures[Deliveries] - s.Counts().Sent
	return nil
}

// newBooks returns books with the messages of the workload and the orders of the table.
func (a *audit) newBooks() *invariants.Books {
	b := &invariants.Books{Orders: map[order.ID]invariants.Order{}, Ended: true}
	decoder := jobs.NewDecoder()
	for n := range a.workload.Orders {
		for _, m := range a.workload.messages(n) {
			b.Messages = append(b.Messages, invariants.NewMessage(decoder, m.body, m.name()))
		}
		for _, m := range a.workload.refunds(n) {
			b.Messages = append(b.Messages, invariants.NewMessage(decoder, m.body(), m.name()))
		}
	}
	for _, row := range a.rows {
		if row.Order != nil {
			b.Orders[row.Order.OrderID] = *row.Order
		}
	}
	return b
}

// addBooks checks the invariants of the product. A message has its name in place of an
// id.
func (a *audit) addBooks(b *invariants.Books) {
	b.Parked = map[string]invariants.DeadLetter{}
	for name, dead := range a.dead {
		_, b.Parked[name] = system.DeadLetterOf(dead)
	}
	a.books, a.checks = b, b.Check()
	a.countRefunds()
	a.figures[Published], a.figures[Mails], a.figures[Doubts] = len(b.Bus), len(b.Mail), len(b.Doubts)
	for id := range b.Orders {
		if a.workload.numberOf(string(id)) < 0 {
			a.report("I4", fmt.Sprintf("row %q is of an unknown order", id))
		}
	}
}

// check counts every order. left are orders that waited too long during the storm, leaks
// log lines that contain personal data or a key.
func (a *audit) check(left, leaks []string) {
	for n := range a.workload.Orders {
		id, messages := orderID(n), a.workload.messages(n)
		amounts, statuses := a.figures[WrongAmount], a.figures[WrongStatus]
		a.countOrder(a.rows[id], messages, a.ledger[id])
		if a.figures[WrongAmount] > amounts {
			a.report("I2", fmt.Sprintf("order %s was charged %+v, which was not sent", id, a.ledger[id]))
		}
		if a.figures[WrongStatus] > statuses {
			got, want := a.rows[id].Status, messages[0].want
			a.report("I15", fmt.Sprintf("wrong status: order %s is %s, want %s", id, got, want))
		}
	}
	a.report("I17", left...)
	a.report("I13", leaks...)
}

// countOrder counts one order, for any handler. An order without a row has a zero one.
func (a *audit) countOrder(row Row, messages []message, ledger []stripetest.Charge) {
	f := a.figures
	f[Messages] += len(messages)
	charges := slices.DeleteFunc(slices.Clone(ledger),
		func(c stripetest.Charge) bool { return c.Outcome != stripetest.Charged })
	left := a.deadLetters(messages)
	if messages[0].content == invalid {
		f.countIf(WrongAmount, len(charges) > 0)
		f.countIf(Lost, len(charges) == 0 && left[invalid] == 0)
		return
	}
	f[Orders]++
	f.countIf(ChargedTwice, len(charges) > 1)
	f.countIf(WrongAmount, wrongAmount(row, messages, charges))
	f.countIf(Settled, row.Settled)
	f.countIf(Lost, !row.Settled && left[original]+left[conflicting] == 0)
	f.countIf(Stuck, !row.Settled && left[original]+left[conflicting] > 0)
	f.countIf(LedgerMismatch, row.Settled && row.Status.Charged() != (len(charges) > 0))
	f.countIf(WrongStatus, row.Settled && !a.workload.allows(messages[0], row.Status))
	f.countIf(ConflictLost, conflictLost(row, messages, ledger, left))
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

func (a *audit) deadLetters(messages []message) (left [3]int) {
	for _, m := range messages {
		if _, dead := a.dead[m.name()]; dead {
			left[m.content]++
		}
	}
	return left
}

// wrongAmount reports whether a charge differs from every message of the order, from the
// first charge, or from the row.
func wrongAmount(row Row, messages []message, charges []stripetest.Charge) bool {
	return slices.ContainsFunc(charges, func(c stripetest.Charge) bool {
		sent := func(m message) bool { return m.total == system.ChargeOf(c).Total }
		return !slices.ContainsFunc(messages, sent) || c.Amount != charges[0].Amount ||
			row.Amount != 0 && c.Amount != row.Amount
	})
}

// conflictLost reports whether one of two conflicting messages was neither sent to Stripe
// nor left in a queue.
func conflictLost(row Row, messages []message, ledger []stripetest.Charge, left [3]int) bool {
	if !row.Settled || len(messages) < 2 || messages[1].content != conflicting {
		return false
	}
	for _, m := range messages[:2] {
		tried := func(c stripetest.Charge) bool { return system.ChargeOf(c).Total == m.total }
		if left[m.content] == 0 && !slices.ContainsFunc(ledger, tried) && row.Amount != m.total.Amount {
			return true
		}
	}
	return false
}

// report adds violations, or none, to the result of an invariant. It ignores other
// handlers than the product.
func (a *audit) report(id string, broken ...string) {
	at := slices.IndexFunc(a.checks, func(r invariants.Result) bool { return r.ID == id })
	if at >= 0 {
		a.checks[at].Broken = append(a.checks[at].Broken, broken...)
	}
}

// countRefunds counts what became of the refunds that were asked for, and the orders that
// were canceled or are out of stock.
func (a *audit) countRefunds() {
	f := a.figures
	for n := range a.workload.Orders {
		o, sent := a.books.Orders[order.ID(orderID(n))], a.workload.refunds(n)
		f[RefundMessages] += len(sent)
		f.countIf(Canceled, o.Status == order.Canceled)
		f.countIf(OutOfStock, o.Status == order.OutOfStock)
		seen := map[refund.ID]bool{}
		for _, m := range sent {
			if seen[m.id] {
				continue
			}
			seen[m.id] = true
			item, known := o.Refund(m.id)
			reason, made := a.books.Parked[m.name()].Reason, a.books.Made(o.OrderID, m.id)
			f.countIf(RefundsMade, made > 0)
			f.countIf(RefundsDoubled, made > 1)
			f.countIf(RefundsRefused, item.Status == refund.Refused)
			f.countIf(RefundsUnknown, item.Status == refund.Unknown)
			f.countIf(RefundsExceeding, !known && reason == refund.ReasonExceeds)
			f.countIf(RefundsNotCharged, !known && reason == refund.ReasonNotCharged)
		}
		f[RefundsAsked] += len(seen)
	}
}

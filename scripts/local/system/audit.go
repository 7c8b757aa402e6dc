package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
)

// Posted is a message that was sent, and its order or refund. Invalid is why it is
// neither, and Job is zero then.
type Posted struct {
	jobs.Job

	Body      string
	MessageID string
	Invalid   error
}

// NewPosted decodes a body as the function does.
func NewPosted(d *jobs.Decoder, body, messageID string) Posted {
	j, err := d.Decode(body)
	return Posted{Job: j, Body: body, MessageID: messageID, Invalid: err}
}

// Check is an invariant of docs/design.md, and each place where it is broken.
type Check struct {
	ID, Claim string
	Broken    []string
}

// Show prints checks, each with at most five of its violations, and returns the ids of
// the broken ones.
func Show(w io.Writer, checks []Check) (broken []string) {
	fmt.Fprintln(w, "\nInvariants (docs/design.md):")
	for _, c := range checks {
		mark := "ok    "
		if len(c.Broken) > 0 {
			mark, broken = "BROKEN", append(broken, c.ID)
		}
		fmt.Fprintf(w, "  %s %-4s %s\n", mark, c.ID, c.Claim)
		for _, b := range c.Broken[:min(len(c.Broken), 5)] {
			fmt.Fprintf(w, "              %s\n", b)
		}
		if more := len(c.Broken) - 5; more > 0 {
			fmt.Fprintf(w, "              and %d more\n", more)
		}
	}
	return broken
}

// Books hold what Audit compares: the messages, the table, Stripe's ledger, the queues
// and the function's log.
type Books struct {
	Posted  []Posted
	Records map[order.ID]order.Record
	Charges map[order.ID][]stripetest.Charge
	Intents map[string]stripetest.Intent
	Parked  map[string]sqstest.Message // by the message's first id
	Left    sqstest.Counts             // of the order queue
	Log     []Line
	Logged  string
	// Accounts are the orders' money in the table; nil means that refunds are not audited.
	// Refunds are those of Stripe, by the order of their intent.
	Accounts map[order.ID]refund.Account
	Refunds  map[order.ID][]stripetest.Refund
	// Stock is what the stock table has, and Delivered what came in; nil means that stock
	// is not tracked.
	Stock     map[string]order.Stock
	Delivered map[string]int64
	// Publishes means that there is a publish function, and Bus is what it published, in
	// order.
	Publishes bool
	Bus       []BusEvent
	// Receipts are those of the table, by order; nil means that there is no receipt
	// function. Mail is what it sent, Doubts what the operator's list shows, and
	// AtLeastOnce means that it repeats a send whose result is unknown.
	Receipts    map[order.ID][]receipt.Item
	Mail        []sestest.Email
	Doubts      []receipt.Item
	DeadEvents  int // dead letters of the receipt queue
	AtLeastOnce bool
}

// Collect reads the books of a system at rest.
func (s *System) Collect(ctx context.Context, posted []Posted, log *Log) (Books, error) {
	b := Books{
		Posted: posted, Records: map[order.ID]order.Record{}, Charges: map[order.ID][]stripetest.Charge{},
		Intents: map[string]stripetest.Intent{}, Parked: map[string]sqstest.Message{},
		Accounts: map[order.ID]refund.Account{}, Refunds: map[order.ID][]stripetest.Refund{},
		Log: log.Lines(), Logged: log.Text(),
	}
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, c := range m.Ledger() {
			if c.Outcome == stripetest.Charged {
				b.Charges[order.ID(c.OrderID)] = append(b.Charges[order.ID(c.OrderID)], c)
			}
		}
		for _, i := range m.Intents() {
			b.Intents[i.ID] = *i
		}
		for _, r := range m.Refunds() {
			id := order.ID(m.Intent(r.Intent).OrderID())
			b.Refunds[id] = append(b.Refunds[id], *r)
		}
	})
	var err error
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) { err = b.collectQueues(s, m, now) })
	if err := errors.Join(err, b.collectBus(ctx, s), b.collectStock(ctx, s)); err != nil {
		return b, err
	}
	for _, p := range posted {
		if err := b.collectRow(ctx, s, p.OrderID()); err != nil {
			return b, err
		}
	}
	return b, b.collectReceipts(ctx, s)
}

// collectRow reads an order's row, if there is one.
func (b *Books) collectRow(ctx context.Context, s *System, id order.ID) error {
	if _, known := b.Records[id]; known || id == "" {
		return nil
	}
	record, err := s.Store.Load(ctx, id)
	if errors.Is(err, order.ErrNotFound) {
		return nil
	}
	if err == nil {
		b.Records[id] = record
		b.Accounts[id], err = dynamodb.NewRefunds(s.Store).Account(ctx, id)
	}
	return err
}

func (b *Books) collectQueues(s *System, m *sqstest.Machine, now time.Time) error {
	counts, err := m.Counts(now, s.OrderQueue())
	if err != nil {
		return err
	}
	dead, err := m.Messages(now, s.DeadLetterQueue())
	if err != nil {
		return err
	}
	b.Left = counts
	for _, message := range dead {
		first := message.ID
		if a, ok := message.Attributes[sqs.AttrFirstMessageID]; ok {
			first = a.Text
		}
		b.Parked[first] = message
	}
	return nil
}

type check struct {
	id, claim string
	broken    func() findings
}

// Audit checks the invariants, I16 if there is a publish function, I18 to I21 if there
// are accounts, I22 if stock is tracked, and I23 if there is a receipt function.
func (b *Books) Audit() []Check {
	checks := []check{
		{"I1", "at most one successful charge per order", b.chargedTwice},
		{"I2", "the charge is the claimed amount and currency", b.wrongAmount},
		{"I3", "every message ended: settled row, or dead-letter queue with a reason", b.unended},
		{"I4", "table and Stripe's ledger agree, both ways", b.ledgerMismatches},
		{"I7", "no invalid transition", b.invalidTransitions},
		{"I8", "exactly one event row per transition", b.wrongEvents},
		{"I9", "same orderId, other content: parked, never charged", b.lostConflicts},
		{"I13", "no customer, card or key in any log line", b.leaks},
		{"I15", "no order shows declined if it was charged or only needs authentication", b.wrongStatuses},
		{"I17", "no order waits although Stripe has its outcome", b.leftWaiting},
	}
	if b.Publishes {
		published := check{"I16", "every transition is published, in order for each order", b.wronglyPublished}
		checks = slices.Insert(checks, len(checks)-1, published)
	}
	if b.Accounts != nil {
		checks = append(checks, b.refundChecks()...)
	}
	if b.Stock != nil {
		const claim = "stock, rows and charges agree: no piece is lost or sold twice"
		checks = append(checks, check{"I22", claim, b.unbalancedStock})
	}
	if b.Receipts != nil {
		checks = append(checks, b.receiptChecks()...)
	}
	out := make([]Check, len(checks))
	for i, c := range checks {
		out[i] = Check{c.id, c.claim, c.broken()}
	}
	return out
}

func (b *Books) chargedTwice() (broken findings) {
	for id, charges := range b.Charges {
		if len(charges) > 1 {
			broken.add("double charge: order %s was charged %d times", id, len(charges))
		}
	}
	return broken.sorted()
}

func (b *Books) wrongAmount() (broken findings) {
	for id, charges := range b.Charges {
		for _, c := range charges {
			got := order.Money{Amount: c.Amount, Currency: order.Currency(c.Currency)}
			if want := b.Records[id].Total; got != want {
				broken.add("amount mismatch: order %s was charged %s, its row has %s", id, got, want)
			}
		}
	}
	return broken.sorted()
}

func (b *Books) unended() (broken findings) {
	if !b.Left.Empty() {
		broken.add("the order queue is not empty: %+v", b.Left)
	}
	for _, p := range b.Posted {
		if dead, parked := b.Parked[p.MessageID]; parked {
			if dead.Attributes[sqs.AttrReason].Text == "" {
				broken.add("no reason: message %s is parked without one", p.MessageID)
			}
			continue
		}
		if !b.settled(p) {
			broken.add("message lost: %s is neither settled nor parked%s", p.MessageID, ofOrder(p.OrderID()))
		}
	}
	return broken
}

// ofOrder names the order of a message, if the message does.
func ofOrder(id order.ID) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(" (order %s)", id)
}

// settled reports whether the row has a result for a message.
func (b *Books) settled(p Posted) bool {
	if p.IsRefund() {
		i, found := b.Accounts[p.OrderID()].Item(p.Refund.ID())
		return found && i.Status != refund.Open
	}
	record, found := b.Records[p.OrderID()]
	return p.Invalid == nil && found && record.Status != order.Open
}

func (b *Books) ledgerMismatches() (broken findings) {
	for id, r := range b.Records {
		charges := b.Charges[id]
		paid := r.Status.Charged()
		if paid != (len(charges) > 0) {
			broken.add("ledger mismatch: order %s is %s with %d charges", id, r.Status, len(charges))
		}
		for _, c := range charges {
			if c.Intent != string(r.Intent) {
				broken.add("ledger mismatch: order %s was charged through %s, its row is bound to %s",
					id, c.Intent, r.Intent)
			}
		}
	}
	for id := range b.Charges {
		if _, found := b.Records[id]; !found {
			broken.add("ledger mismatch: order %s was charged and has no row", id)
		}
	}
	broken = append(broken, b.refundMismatches()...)
	return broken.sorted()
}

func (b *Books) invalidTransitions() (broken findings) {
	for id, r := range b.Records {
		at := order.Open
		for _, e := range r.Events {
			if e.From != at || e.Validate() != nil {
				broken.add("invalid transition: order %s: %s -> %s", id, e.From, e.To)
			}
			at = e.To
		}
		if at != r.Status {
			broken.add("event missing: order %s is %s, its events end with %s", id, r.Status, at)
		}
	}
	return broken.sorted()
}

func (b *Books) wrongEvents() (broken findings) {
	for id, r := range b.Records {
		for i, e := range r.Events {
			if e.Seq != i+1 {
				broken.add("event missing: order %s: event %d has seq %d", id, i+1, e.Seq)
			}
		}
		if len(r.Events) != r.Seq {
			broken.add("event count: order %s has seq %d and %d event rows", id, r.Seq, len(r.Events))
		}
	}
	return broken.sorted()
}

func (b *Books) lostConflicts() (broken findings) {
	for _, p := range b.Posted {
		record, found := b.Records[p.Order.ID()]
		if p.Invalid != nil || !found || record.Fingerprint == p.Order.Fingerprint() {
			continue
		}
		if b.Parked[p.MessageID].Attributes[sqs.AttrReason].Text != string(order.ReasonConflict) {
			broken.add("conflict lost: message %s has different content for order %s and was not parked",
				p.MessageID, p.Order.ID())
		}
	}
	return broken
}

// wrongStatuses returns the orders that are declined although their intent succeeded, or
// although no bank declined it.
func (b *Books) wrongStatuses() (broken findings) {
	for id, r := range b.Records {
		if r.Status != order.Declined {
			continue
		}
		intent := b.Intents[string(r.Intent)]
		notDeclined := intent.LastError == nil || intent.LastError.Code == "authentication_required"
		if notDeclined || intent.Status == stripetest.StatusSucceeded {
			broken.add("wrong status: order %s is declined, its intent %s is %s", id, r.Intent, intent.Status)
		}
	}
	return broken.sorted()
}

// LeftWaiting returns the orders that wait although Stripe has an outcome for them, from
// Records and Intents alone.
func (b *Books) LeftWaiting() []string { return b.leftWaiting() }

func (b *Books) leftWaiting() (broken findings) {
	for id, r := range b.Records {
		_, waits := r.Status.RecheckAfter()
		outcome := outcomeOf(b.Intents[string(r.Intent)])
		if waits && outcome != "" && r.Status.Transition(outcome) == nil {
			broken.add("left waiting: order %s is %s, Stripe has it %s", id, r.Status, outcome)
		}
	}
	return broken.sorted()
}

// outcomeOf returns the status of an order to which its intent leads, or "" if the intent
// has no outcome. It reads the intent itself and does not use package order, so that a
// test compares the two.
func outcomeOf(i stripetest.Intent) order.Status {
	switch {
	case i.Status == stripetest.StatusSucceeded:
		return order.Paid
	case i.Status == stripetest.StatusCanceled:
		return order.Canceled
	case i.Status == stripetest.StatusProcessing:
		return order.Pending
	case i.Status != stripetest.StatusRequiresPaymentMethod || i.LastError == nil:
		return ""
	case i.LastError.Code == "authentication_required":
		return order.ActionRequired
	}
	return order.Declined
}

// findings are the places where an invariant is broken.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (f findings) sorted() findings {
	slices.Sort(f)
	return f
}

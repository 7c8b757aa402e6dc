package run

import (
	"errors"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
)

// Message is a message of a workload.
type Message struct {
	Number               int // of its order
	Name, OrderID, Body  string
	Invalid, Conflicting bool
	Total                order.Money
	Want                 order.Status
}

// Messages returns the messages of an order.
func (s Workload) Messages(n int) (all []Message) {
	for _, m := range s.messages(n) {
		all = append(all, Message{
			n, m.name(), orderID(m.order), m.body, m.content == invalid, m.content == conflicting, m.total,
			m.want,
		})
	}
	return all
}

// RefundMessage is a message for a refund.
type RefundMessage struct {
	Name, OrderID, Body string
	ID                  refund.ID
	Amount              int64
	Conflicting, Early  bool
}

// RefundMessages returns the messages for refunds of an order.
func (s Workload) RefundMessages(n int) (all []RefundMessage) {
	for _, m := range s.refunds(n) {
		all = append(all, RefundMessage{m.name(), orderID(m.order), m.body(), m.id, m.amount, m.conflicting, m.early})
	}
	return all
}

// Loses reports whether an order loses its message after the charge.
func (s Workload) Loses(n int) bool { return s.loses(n) }

// End is the state at the end of a storm.
type End struct {
	Product bool
	Rows    []Row
	Ledger  []stripetest.Charge
	Refunds []*stripetest.Refund
	Dead    []sqstest.Message
	Intents map[order.IntentID]invariants.Intent
	Left    []string
	Leaks   []string
	Waiting int   // messages in the order queue
	ReadErr error // of the table, after its rows
}

// Audit audits the end of a storm.
func Audit(s Workload, e End) (Count, []invariants.Result, error) {
	b, err := auditEnd(s, e)
	return b.count, b.checks, err
}

func auditEnd(s Workload, e End) (*audit, error) {
	b := newAudit(s, e.Dead)
	b.product, b.left = e.Product, e.Waiting
	b.intent = func(id order.IntentID) invariants.Intent { return e.Intents[id] }
	b.addCharges(e.Ledger)
	b.addRefunds(e.Refunds)
	return b, b.check(func(yield func(Row, error) bool) {
		for _, row := range e.Rows {
			if !yield(row, nil) {
				return
			}
		}
		if e.ReadErr != nil {
			yield(Row{}, e.ReadErr)
		}
	}, e.Left, e.Leaks)
}

// Polls polls a system at most so often. It returns the polls at which the clocks are
// advanced, and the one at which the storm stalls; 0 is never.
func Polls(most int, busy func(poll int) bool, delivered func(poll int) int64) (advanced []int, stalledAt int) {
	v := idleWatch{delivered: -1}
	for n := 1; n <= most; n++ {
		idle, stalled := v.poll(busy(n), delivered(n))
		if idle {
			advanced = append(advanced, n)
		}
		if stalled {
			return advanced, n
		}
	}
	return advanced, 0
}

// StallTimeout returns the number of polls in it.
func StallTimeout() int { return int(stallTimeout / pollInterval) }

// Leaks writes lines to a function log and returns the leaks.
func Leaks(path string, lines ...string) (leaks []string, err error) {
	s, err := newFunctionLog(path)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if _, err := s.Write([]byte(line)); err != nil {
			return nil, err
		}
	}
	return s.leaked(), s.Close()
}

// SettledLater counts the orders that the lines of a log say were settled without a
// message.
func SettledLater(path string, lines ...string) (int, error) {
	s, err := newFunctionLog(path)
	for _, line := range lines {
		_, failed := s.Write([]byte(line))
		err = errors.Join(err, failed)
	}
	return s.settled(), errors.Join(err, s.Close())
}

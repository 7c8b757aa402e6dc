package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// rowsAtOnce bounds the rows that one round reads, so that a storm does not delay the
// picture.
const rowsAtOnce = 100

func (w *Watch) readQueue(s *system.System) {
	messages := s.Messages()
	dead, _ := s.Dead() // the queues exist
	var at time.Time
	s.SQS.Machine(func(_ *sqstest.Machine, now time.Time) { at = now })
	w.mu.Lock()
	defer w.mu.Unlock()
	ahead := at.Sub(w.now()).Round(100 * time.Millisecond) // the same in the next picture
	if hours := ahead.Round(time.Hour); hours >= time.Hour {
		w.shown.Ahead = fmt.Sprintf("%.0f h", hours.Hours())
	}
	queue, seen := Queue{}, map[string]bool{}
	for _, m := range messages {
		seen[m.ID] = true
		w.live(m, ahead)
		switch m.State {
		case sqstest.Visible:
			queue.Waiting++
		case sqstest.InFlight:
			queue.InFlight++
		}
	}
	for id, l := range w.messages {
		if !seen[id] {
			delete(w.messages, id)
			delete(l.live, id)
		}
	}
	w.shown.Queue = queue
	w.showDead(dead)
}

func (w *Watch) live(now sqstest.Message, ahead time.Duration) {
	l := w.messages[now.ID]
	if l == nil {
		first, _ := system.DeadLetterOf(now) // if it was one
		l = w.posted(now.Body, first)
		w.messages[now.ID] = l
		w.enter(l, Entry{
			At: now.Sent.Add(-ahead).UnixMilli(), Kind: Message, From: You, To: SQS, Text: "message " + tail(now.ID),
		})
	}
	l.live[now.ID] = message{now.State, now.VisibleAt.Add(-ahead).UnixMilli()}
	w.touch(l)
}

// showDead notes the dead letters. One that was parked keeps its place in the books also
// when it has left the queue.
func (w *Watch) showDead(messages []sqstest.Message) {
	dead, of := []Dead{}, map[*line]bool{}
	for _, m := range messages {
		first, letter := system.DeadLetterOf(m)
		l, reason := w.lineOf(m.Body), string(letter.Reason)
		if _, known := l.books.Parked[first]; !known || l.Reason != reason {
			l.Reason = reason
			w.enter(l, Entry{Kind: Message, From: SQS, To: DeadLetters, Text: "parked: " + reason})
		}
		l.books.Parked[first] = letter
		of[l] = true
		dead = append(dead, Dead{Message: tail(m.ID), Order: l.ID, Reason: reason})
	}
	for _, l := range w.byN {
		if l.dead != of[l] {
			l.dead = of[l]
			w.touch(l)
		}
	}
	w.shown.Dead = dead
}

// readStripe reads what has changed in Stripe's books.
func (w *Watch) readStripe(s *system.System) {
	var charges []stripetest.Charge
	var intents []*stripetest.Intent
	var refunds []*stripetest.Refund
	s.Stripe.Machine(func(m *stripetest.Machine) {
		charges, intents, refunds = m.LedgerAfter(w.ledger), m.Intents(), m.Refunds()
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ledger += len(charges)
	for i, now := range intents {
		if i >= len(w.intents) || w.intents[i] != now {
			l := w.line(now.OrderID())
			l.books.Intents[order.IntentID(now.ID)] = system.IntentOf(now)
			w.touch(l)
			w.dirty[l] = true
		}
	}
	for i, now := range refunds {
		if i >= len(w.refunds) || w.refunds[i] != now {
			at := slices.IndexFunc(intents, func(i *stripetest.Intent) bool { return i.ID == now.Intent })
			l := w.line(intents[at].OrderID())
			id, of := order.ID(l.ID), system.RefundOf(now)
			same := func(r invariants.Refund) bool { return r.ID == of.ID }
			l.books.Refunds[id] = append(slices.DeleteFunc(l.books.Refunds[id], same), of)
			w.touch(l)
			w.dirty[l] = true
		}
	}
	w.intents, w.refunds = intents, refunds
	for _, c := range charges {
		w.charged(c)
	}
}

// charged notes a line of the ledger. A second charge of an order turns its light red at
// once.
func (w *Watch) charged(c stripetest.Charge) {
	if c.Outcome != stripetest.Charged {
		return
	}
	l := w.line(c.OrderID)
	l.books.Charges[order.ID(l.ID)] = append(l.charges(), system.ChargeOf(c))
	w.touch(l)
	w.totals.Charges++
	if len(l.charges()) < 2 {
		return
	}
	times := "twice"
	if n := len(l.charges()); n > 2 {
		times = fmt.Sprintf("%d times", n)
	} else {
		w.totals.Twice++
	}
	var charges []string
	for _, c := range l.charges() {
		charges = append(charges, fmt.Sprintf("%s through %s", c.Total, c.Intent))
	}
	l.Note = l.because(fmt.Sprintf("%s was charged %s: %s", l.ID, times, strings.Join(charges, " and ")))
	l.findings["I1"] = []string{l.Note}
	w.enter(l, Entry{Kind: Note, From: Stripe, Text: l.Note})
	w.say(Bad, l.Note)
	w.showLights()
}

// because adds to a finding which guard was missing, if one was.
func (l *line) because(finding string) string {
	if l.missing == "" {
		return finding
	}
	return finding + "; missing: " + l.missing
}

func (w *Watch) readMail(s *system.System) {
	if s.Mail == nil {
		return
	}
	sent := s.Mail.Sent()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range sent[min(w.mails, len(sent)):] {
		of := system.EmailOf(e)
		l := w.line(string(of.OrderID))
		l.Mails++
		l.books.Mail = append(l.books.Mail, of)
		w.totals.Mails++
		w.enter(l, Entry{Kind: Message, From: Others, To: Mailbox, Text: "receipt"})
	}
	w.mails = len(sent)
}

func (w *Watch) readRows(ctx context.Context, s *system.System) {
	w.mu.Lock()
	dirty := slices.Collect(maps.Keys(w.dirty))
	dirty = dirty[:min(len(dirty), rowsAtOnce)]
	for _, l := range dirty {
		delete(w.dirty, l)
	}
	w.mu.Unlock()
	for _, l := range dirty {
		if l.ID == "" {
			continue
		}
		row, err := s.Order(ctx, order.ID(l.ID))
		if errors.Is(err, order.ErrNotFound) {
			continue
		}
		w.mu.Lock()
		if err != nil {
			w.dirty[l] = ctx.Err() == nil // next time
		} else {
			l.row = row
			w.touch(l)
		}
		w.mu.Unlock()
	}
}

func (w *Watch) totalsNow() Totals {
	t, rows := w.totals, map[string]int{}
	t.Orders, t.Rows = len(w.byN), []Row{}
	for _, l := range w.byN {
		if l.row.Status != "" {
			rows[string(l.row.Status)]++
		}
	}
	for _, status := range slices.Sorted(maps.Keys(rows)) {
		t.Rows = append(t.Rows, Row{Status: status, Orders: rows[status]})
	}
	return t
}

package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

type line struct {
	Order // without the fields that summary sets

	books    invariants.Books   // of this order alone
	row      invariants.Order   // without a status if there is none
	working  []int              // instances that process it
	owners   map[string]int     // the instance of each claim
	calls    map[Place]int      // under way
	live     map[string]message // in the order queue
	dead     bool               // a message of it is a dead letter
	entries  []Entry
	dropped  int
	logged   strings.Builder
	since    time.Time           // of the last change
	audits   int                 // since the last change
	findings map[string][]string // by invariant
	missing  string              // a guard that a program which processed it lacked, in words
}

type message struct {
	state   sqstest.State
	visible int64 // when it can be received, in milliseconds by this machine's clock
}

func newLine(id string, n int) *line {
	return &line{
		Order: Order{ID: id, N: n}, owners: map[string]int{}, calls: map[Place]int{},
		live: map[string]message{}, findings: map[string][]string{},
		books: invariants.Books{
			Parked: map[string]invariants.DeadLetter{}, Intents: map[order.IntentID]invariants.Intent{},
			Charges: map[order.ID][]invariants.Charge{}, Refunds: map[order.ID][]invariants.Refund{},
			Bus: []invariants.Event{}, Secrets: []string{system.PretendKey},
		},
	}
}

func (l *line) charges() []invariants.Charge { return l.books.Charges[order.ID(l.ID)] }

// line returns the line of an order, which is new at the first call. The line of "" is
// not shown.
func (w *Watch) line(id string) *line {
	if id == "" {
		return w.nameless
	}
	l := w.lines[id]
	if l == nil {
		l = newLine(id, len(w.byN)+1)
		w.lines[id] = l
		w.byN = append(w.byN, l)
		if old := len(w.byN) - timelines; old > 0 { // its entries are dropped
			forgotten := w.byN[old-1]
			forgotten.dropped, forgotten.entries = forgotten.dropped+len(forgotten.entries), nil
		}
		w.touch(l)
	}
	return l
}

func (w *Watch) touch(l *line) {
	l.since, l.audits = w.now(), 0
}

// enter adds an entry to a timeline, at its time: some are known later than they happen.
func (w *Watch) enter(l *line, e Entry) {
	if e.At == 0 {
		e.At = w.now().UnixMilli()
	}
	if len(l.entries) >= longest {
		l.entries = slices.Delete(l.entries, 0, 1)
		l.dropped++
	}
	at := len(l.entries)
	for at > 0 && (l.entries[at-1].At > e.At || e.From == You && l.entries[at-1].At == e.At) {
		at--
	}
	l.entries = slices.Insert(l.entries, at, e)
	w.touch(l)
}

// Enter adds an entry to the timeline of an order.
func (w *Watch) Enter(id string, e Entry) { w.about(id, func(l *line) { w.enter(l, e) }) }

func (l *line) summary() Order {
	o := l.Order
	o.Place, o.Message = l.place(), l.messageState()
	for _, m := range l.live {
		if m.state != sqstest.Visible && (o.VisibleAt == 0 || m.visible < o.VisibleAt) {
			o.VisibleAt = m.visible
		}
	}
	if len(l.working) > 0 {
		o.VisibleAt = 0
	} else {
		o.Step = ""
	}
	if r := l.row; r.Status != "" {
		o.Status, o.Attempt, o.Intent = string(r.Status), r.Attempt, string(r.Intent)
		o.Amount = r.Total.String()
		if r.Owner != "" {
			o.LeaseUntil, o.Owner = r.Until.UnixMilli(), r.Owner[:min(len(r.Owner), 6)]+"…"
		}
	} else if m := l.books.Messages; len(m) > 0 && m[0].Invalid == nil && !m[0].IsRefund() {
		o.Amount = m[0].Order.Total().String()
	}
	o.Stripe, o.Charges, o.Events = l.stripeStatus(), len(l.charges()), len(l.books.Bus)
	o.Bad, o.Entries = l.broken(), l.dropped+len(l.entries)
	return o
}

// place returns where the order is: where a call about it is, or else who works on it.
func (l *line) place() Place {
	switch {
	case l.calls[AtStripe] > 0:
		return AtStripe
	case l.calls[AtTable] > 0:
		return AtTable
	case len(l.working) > 0:
		return InFunction
	case len(l.live) > 0:
		return InQueue
	case l.dead && !l.settled():
		return DeadLetter
	}
	return Settled
}

func (l *line) settled() bool {
	switch l.row.Status {
	case "", order.Open, order.Refused:
		return false
	case order.Paid, order.Declined, order.Canceled, order.ActionRequired, order.Pending, order.OutOfStock,
		order.PartiallyRefunded, order.Refunded:
	}
	return true
}

// messageState returns the state of the order's most active message.
func (l *line) messageState() string {
	states := map[sqstest.State]bool{}
	for _, m := range l.live {
		states[m.state] = true
	}
	switch {
	case states[sqstest.InFlight]:
		return "in_flight"
	case states[sqstest.Visible]:
		return "waiting"
	case l.dead:
		return "parked"
	}
	return "acknowledged"
}

// stripeStatus returns the status of the bound intent at Stripe, or of the newest one.
func (l *line) stripeStatus() string {
	intents := l.books.Intents
	if bound, ok := intents[l.row.Intent]; ok || len(intents) == 0 {
		return bound.Status
	}
	return intents[slices.Max(slices.Collect(maps.Keys(intents)))].Status
}

// broken returns what the lights found, in a stable order.
func (l *line) broken() (all []string) {
	for _, id := range slices.Sorted(maps.Keys(l.findings)) {
		all = append(all, l.findings[id]...)
	}
	return all
}

func function(n int) string { return fmt.Sprintf("Function %d", n) }

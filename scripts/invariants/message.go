package invariants

import (
	"fmt"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func (b *Books) unended(broken report) {
	if b.Left > 0 {
		broken("the queue is not empty: %d messages are left", b.Left)
	}
	for _, m := range b.Messages {
		dead, parked := b.Parked[m.ID]
		switch {
		case parked && dead.Reason == "":
			broken("no reason: message %s is parked without one", m.ID)
		case !parked && !b.settled(m):
			fate := map[bool]string{true: "message waits, or is lost", false: "message lost"}[b.Left > 0]
			broken("%s: %s is neither settled nor parked%s", fate, m.ID, ofOrder(m.OrderID()))
		case b.Ended && m.IsRefund():
			b.wrongReason(m, broken)
		}
	}
}

func ofOrder(id order.ID) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(" (order %s)", id)
}

// settled reports whether the row has a result for a message.
func (b *Books) settled(m Message) bool {
	o, found := b.Orders[m.OrderID()]
	if m.IsRefund() {
		i, known := o.Refund(m.Refund.ID())
		return known && i.Status != refund.Open
	}
	return m.Invalid == nil && found && o.Status != order.Open
}

// wrongReason reports a message of a refund that ended otherwise than its refund, after
// every dead letter was redriven: parked for another reason, or parked although it is
// done.
func (b *Books) wrongReason(m Message, broken report) {
	o := b.Orders[m.OrderID()]
	i, known := o.Refund(m.Refund.ID())
	var want order.Reason // "" is acknowledged
	switch {
	case known && i.Status == refund.Open:
		return // I21
	case known && !same(i, m):
		want = order.ReasonConflict
	case known && i.Status == refund.Unknown:
		want = refund.ReasonUnknown
	case known:
	case !o.Status.Charged():
		want = refund.ReasonNotCharged
	case m.Refund.Amount() > o.Left:
		want = refund.ReasonExceeds
	}
	if got := b.Parked[m.ID].Reason; got != want {
		broken("wrong reason: message %s of order %s is parked for %q, want %q", m.ID, o.OrderID, got, want)
	}
}

// same reports whether a message asks for the refund that is known under its id.
func same(i refund.Item, m Message) bool {
	return i.Amount == m.Refund.Amount() && (i.Reason == m.Refund.Reason() || i.Reason == "")
}

func (b *Books) lostConflicts(broken report) {
	b.conflictsDone(broken)
	for _, m := range b.Messages {
		o, found := b.Orders[m.OrderID()]
		dead, parked := b.Parked[m.ID]
		lost := m.Invalid == nil && found && !m.IsRefund() && o.Fingerprint != m.Order.Fingerprint() &&
			dead.Reason != order.ReasonConflict
		if i, known := o.Refund(m.Refund.ID()); m.IsRefund() && known && !same(i, m) {
			lost = !parked // perhaps for another reason, before that refund was begun
		}
		if lost {
			broken("conflict lost: message %s has different content for order %s and was not parked",
				m.ID, o.OrderID)
		}
	}
}

func (b *Books) invalidTransitions(broken report) {
	for id, o := range b.Orders {
		at := order.Open
		for _, e := range o.Events {
			if e.From != at || e.Validate() != nil {
				broken("invalid transition: order %s: %s -> %s", id, e.From, e.To)
			}
			at = e.To
		}
		if at != o.Status {
			broken("event missing: order %s is %s, its events end with %s", id, o.Status, at)
		}
	}
}

func (b *Books) missingEvents(broken report) {
	b.settledTwice(broken)
	for id, o := range b.Orders {
		for i, e := range o.Events {
			if e.Seq != i+1 {
				broken("event missing: order %s: event %d has seq %d", id, i+1, e.Seq)
			}
		}
		if len(o.Events) != o.Seq {
			broken("event count: order %s has seq %d and %d event rows", id, o.Seq, len(o.Events))
		}
	}
}

func (b *Books) unsettled(broken report) {
	for id, o := range b.Orders {
		if o.Status == order.Open {
			broken("not settled: order %s is open after attempt %d: %s", id, o.Attempt, o.LastError)
		}
		for _, i := range o.Refunds {
			if i.Status == refund.Open {
				broken("not settled: refund %s of order %s is open after attempt %d: %s",
					i.ID, id, i.Attempt, i.LastError)
			}
		}
	}
}

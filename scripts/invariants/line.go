package invariants

import (
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Line is a log line of a function about one message (docs/reference/metrics.md, "Logs").
type Line struct {
	At        time.Time `json:"timestamp"`
	Message   string    `json:"message"` // such as "order"
	OrderID   string    `json:"order_id"`
	RefundID  string    `json:"refund_id"`
	Receipt   string    `json:"receipt"` // of a line of the receipt function
	MessageID string    `json:"message_id"`
	Delivery  int       `json:"delivery"`
	Attempt   int       `json:"attempt"`
	Status    string    `json:"status"`
	Verdict   string    `json:"verdict"`
	Reason    string    `json:"reason"`
	Error     string    `json:"error"`
}

// The messages of the lines about orders and refunds.
const (
	orderLine  = "order"
	refundLine = "refund"
)

// ended reports whether a line of a queue has a verdict.
func (l Line) ended(queue string, v order.Verdict) bool {
	return l.Message == queue && l.Verdict == string(v)
}

// lostAcks returns the messages that were acknowledged although no outcome was recorded,
// or one that the history does not have.
func (b *Books) lostAcks(broken report) {
	for _, l := range b.Lines {
		o, found := b.Orders[order.ID(l.OrderID)]
		i, known := o.Refund(refund.ID(l.RefundID))
		was := slices.ContainsFunc(o.Events, func(e order.Event) bool { return string(e.To) == l.Status })
		settled := o.Status != order.Open && o.Status != order.Refused
		switch {
		case !found && (l.ended(orderLine, order.Done) || l.ended(refundLine, order.Done)):
			broken("acknowledged and lost: message %s of order %s, which has no row", l.MessageID, l.OrderID)
		case l.ended(refundLine, order.Done) && (!known || i.Status == refund.Open):
			broken("acknowledged too early: message %s: refund %s of order %s is %q",
				l.MessageID, l.RefundID, l.OrderID, i.Status)
		case l.ended(orderLine, order.Done) && (!settled || !was):
			broken("acknowledged too early: message %s as %q: order %s is %s",
				l.MessageID, l.Status, l.OrderID, o.Status)
		}
	}
}

// conflictsDone returns the messages with other content that were not parked.
func (b *Books) conflictsDone(broken report) {
	conflicts := map[string]bool{}
	for _, l := range b.Lines {
		is := l.Reason == string(order.ReasonConflict)
		conflicts[l.MessageID] = conflicts[l.MessageID] || is
		if is && l.Verdict != string(order.Park) || conflicts[l.MessageID] && l.Verdict == string(order.Done) {
			broken("conflict lost: message %s has different content for order %s: %s",
				l.MessageID, l.OrderID, l.Verdict)
		}
	}
}

// settledTwice returns the orders that two deliveries settled: for the second one, the
// order is a duplicate.
func (b *Books) settledTwice(broken report) {
	first := map[string]Line{}
	for _, l := range b.Lines {
		if !l.ended(orderLine, order.Done) || l.Reason != string(order.ReasonSettled) {
			continue
		}
		by, again := first[l.OrderID]
		if again && (by.MessageID != l.MessageID || by.Delivery != l.Delivery) {
			broken("settled twice: order %s by messages %s and %s", l.OrderID, by.MessageID, l.MessageID)
		}
		first[l.OrderID] = l
	}
}

package run

import (
	"fmt"
	"slices"

	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/local/system"
)

// Refunds is what became of the refunds, and of the orders that operators canceled. It
// counts refundIds unless stated otherwise.
type Refunds struct {
	Asked      int // in at least one message
	Made       int // Stripe has one that counts
	Doubled    int // Stripe has more than one that counts
	Refused    int // by Stripe
	Unknown    int // may have been made; a person compares
	Exceeding  int // parked: more than was left of the charge
	NotCharged int // parked: the order was not charged
	Messages   int // of the workload
	Deliveries int // of these messages
	Kills      int // of processes that had one in their batch
	Canceled   int // orders
}

// Invariants of refunds in docs/design.md.
const (
	madeOnce   = "at most one refund that counts per refundId"
	asAtStripe = "never more back than charged; the row shows what Stripe gave back"
	calledTrue = "no refund is called what it is not; one event per change"
	noneOpen   = "every refund ended; an unknown one waits for a person"
)

// addRefunds adds Stripe's refunds.
func (b *audit) addRefunds(all []*stripetest.Refund) {
	for _, r := range all {
		id := keyOf(r).order
		b.refunds[id] = append(b.refunds[id], r)
		if b.workload.numberOf(id) < 0 {
			b.report("I19", asAtStripe, fmt.Sprintf("refund %s is of the unknown order %q", r.ID, id))
		}
	}
}

// checkRefunds checks the refunds of one order.
func (b *audit) checkRefunds(n int, row Row, charges []stripetest.Charge) {
	of := refunded{sent: b.workload.refunds(n), made: b.refunds[row.OrderID], parked: b.parkedAs}
	if of.OrderID = order.ID(row.OrderID); row.Order != nil {
		of.Order = *row.Order
	}
	for _, c := range charges {
		if c.Outcome == stripetest.Charged {
			of.charged += c.Amount
		}
	}
	b.report("I18", madeOnce, of.doubled()...)
	b.report("I19", asAtStripe, of.sums()...)
	b.report("I20", calledTrue, slices.Concat(of.unlike(), of.wrongEvents(), of.wronglyParked())...)
	b.report("I21", noneOpen, of.unended()...)
	b.countRefunds(of)
}

// parkedAs returns the reason of a dead letter.
func (b *audit) parkedAs(name string) (reason order.Reason, parked bool) {
	m, parked := b.dead[name]
	return order.Reason(m.Attributes[sqs.AttrReason].Text), parked
}

func (b *audit) countRefunds(of refunded) {
	add := func(n *int, condition bool) {
		if condition {
			*n++
		}
	}
	b.back.Messages += len(of.sent)
	add(&b.back.Canceled, of.Status == order.Canceled)
	var ids []refund.ID
	for _, m := range of.sent {
		if slices.Contains(ids, m.id) {
			continue
		}
		ids = append(ids, m.id)
		item, known := of.item(m.id)
		reason, _ := b.parkedAs(m.name())
		add(&b.back.Made, of.counted(m.id) > 0)
		add(&b.back.Doubled, of.counted(m.id) > 1)
		add(&b.back.Refused, item.Status == refund.Refused)
		add(&b.back.Unknown, item.Status == refund.Unknown)
		add(&b.back.Exceeding, !known && reason == refund.ReasonExceeds)
		add(&b.back.NotCharged, !known && reason == refund.ReasonNotCharged)
	}
	b.back.Asked += len(ids)
}

// refunded is an order with its refunds, as messages, row, ledger and queues have them.
type refunded struct {
	system.Order

	charged int64 // 0 if it was not
	sent    []refundMessage
	made    []*stripetest.Refund
	parked  func(name string) (order.Reason, bool)
}

func (o *refunded) item(id refund.ID) (i refund.Item, known bool) {
	n := slices.IndexFunc(o.Refunds, func(i refund.Item) bool { return i.ID == id })
	if n < 0 {
		return refund.Item{}, false
	}
	return o.Refunds[n], true
}

// counts reports whether a refund took money from the charge. It does not ask the
// product.
func counts(r *stripetest.Refund) bool {
	return r.Status != stripetest.RefundFailed && r.Status != stripetest.RefundCanceled
}

// counted returns how many refunds that count Stripe has for an id.
func (o *refunded) counted(id refund.ID) (n int) {
	for _, r := range o.made {
		if counts(r) && keyOf(r).id == id {
			n++
		}
	}
	return n
}

// doubled returns the refunds that were made more than once.
func (o *refunded) doubled() (broken []string) {
	var seen []refund.ID
	for _, r := range o.made {
		id := keyOf(r).id
		if n := o.counted(id); n > 1 && !slices.Contains(seen, id) {
			broken = append(broken, fmt.Sprintf("double refund: %s of order %s was made %d times", id, o.OrderID, n))
		}
		seen = append(seen, id)
	}
	return broken
}

// sums compares the sums of the ledger and of the row.
func (o *refunded) sums() (broken findings) {
	var back, shown, reserved int64
	for _, r := range o.made {
		if counts(r) {
			back += r.Amount
		}
	}
	for _, i := range o.Refunds {
		switch i.Status {
		case refund.Pending, refund.Succeeded:
			shown += i.Amount
		case refund.Open, refund.Unknown:
			reserved += i.Amount
		case refund.Failed, refund.Refused:
		}
	}
	if back > o.charged {
		broken.add("over-refund: %d went back of the %d that order %s was charged", back, o.charged, o.OrderID)
	}
	if shown+o.Outside != back {
		broken.add("ledger mismatch: %d went back of order %s, its row has %d and %d outside", back, o.OrderID,
			shown, o.Outside)
	}
	if left := o.Total.Amount - shown - o.Outside - reserved; left != o.Left {
		broken.add("ledger mismatch: %d are left of order %s, its row has %d", left, o.OrderID, o.Left)
	}
	if want := statusWith(back, o.charged); o.Status.Charged() && o.Status != want {
		broken.add("wrong status: order %s is %s with %d back of %d, want %s", o.OrderID, o.Status, back,
			o.charged, want)
	}
	return broken
}

// statusWith returns the status of an order of which a part went back.
func statusWith(back, charged int64) order.Status {
	switch {
	case back == 0:
		return order.Paid
	case back < charged:
		return order.PartiallyRefunded
	}
	return order.Refunded
}

// unlike returns the refunds that the row shows and Stripe does not, or the other way
// round.
func (o *refunded) unlike() (broken findings) {
	for _, i := range o.Refunds {
		n := slices.IndexFunc(o.made, func(r *stripetest.Refund) bool { return r.ID == string(i.Refund) })
		called := i.Status == refund.Pending || i.Status == refund.Succeeded || i.Status == refund.Failed
		switch {
		case called != (n >= 0):
			broken.add("ledger mismatch: refund %s of order %s is %s, its id at Stripe %q", i.ID, o.OrderID,
				i.Status, i.Refund)
		case called && (string(o.made[n].Status) != string(i.Status) || o.made[n].Amount != i.Amount ||
			keyOf(o.made[n]).id != i.ID):
			broken.add("ledger mismatch: refund %s of order %s is %s of %d, Stripe has %+v", i.ID, o.OrderID,
				i.Status, i.Amount, *o.made[n])
		case !called && o.counted(i.ID) > 0:
			broken.add("wrong status: refund %s of order %s is %s, and Stripe has made it", i.ID, o.OrderID, i.Status)
		}
	}
	for _, r := range o.made {
		if _, known := o.item(keyOf(r).id); !known {
			broken.add("ledger mismatch: the row of order %s lacks the refund %s", o.OrderID, r.ID)
		}
	}
	return broken
}

// wrongEvents compares the events of refunds with the row. The audit of every order
// compares their numbers and the order's statuses.
func (o *refunded) wrongEvents() (broken findings) {
	last := map[string]refund.Status{}
	for _, e := range o.Events {
		if e.Refund.ID == "" { // of the order, or of what others gave back
			continue
		}
		before, to := refund.Open, refund.Status(e.Refund.Status)
		if earlier, changed := last[e.Refund.ID]; changed {
			before = earlier
		}
		item, known := o.item(refund.ID(e.Refund.ID))
		if before.Transition(to) != nil || !known || item.Amount != e.Refund.Amount {
			broken.add("wrong event: order %s has the event of refund %s %s of %d after %s", o.OrderID, e.Refund.ID,
				to, e.Refund.Amount, before)
		}
		last[e.Refund.ID] = to
	}
	for _, i := range o.Refunds {
		if i.Status != refund.Open && last[string(i.ID)] != i.Status {
			broken.add("event missing: refund %s of order %s is %s, its events end with %q", i.ID, o.OrderID, i.Status,
				last[string(i.ID)])
		}
	}
	return broken
}

// wronglyParked returns the messages that ended otherwise than their refunds: parked with
// another reason, acknowledged and not parked, or the other way round.
func (o *refunded) wronglyParked() (broken findings) {
	for _, m := range o.sent {
		item, known := o.item(m.id)
		same := item.Amount == m.amount && item.Reason == m.reason
		var want order.Reason // "" is acknowledged
		switch {
		case known && !same:
			want = order.ReasonConflict
		case known && item.Status == refund.Unknown:
			want = refund.ReasonUnknown
		case known && item.Status == refund.Open: // unended reports it
			continue
		case known:
		case o.charged == 0:
			want = refund.ReasonNotCharged
		case m.amount > o.Left:
			want = refund.ReasonExceeds
		default:
			broken.add("message lost: refund %s of %d of order %s was not begun, %d are left", m.id, m.amount,
				o.OrderID, o.Left)
			continue
		}
		if got, parked := o.parked(m.name()); got != want || parked != (want != "") {
			broken.add("wrong reason: message %s of order %s: parked is %t, for %q, want %q", m.name(), o.OrderID,
				parked, got, want)
		}
	}
	return broken
}

// unended returns the open refunds.
func (o *refunded) unended() (broken findings) {
	for _, i := range o.Refunds {
		if i.Status == refund.Open {
			broken.add("open: refund %s of order %s after attempt %d: %s", i.ID, o.OrderID, i.Attempt, i.LastError)
		}
	}
	return broken
}

// findings are the places where an invariant is broken.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

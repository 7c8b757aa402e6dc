package invariants

import (
	"slices"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func (b *Books) refundedTwice(broken report) {
	for id, all := range b.Refunds {
		seen := map[refund.ID]bool{"": true}
		for _, r := range all {
			if n := b.Made(id, r.Of); n > 1 && !seen[r.Of] {
				broken("double refund: refund %s of order %s was made %d times", r.Of, id, n)
			}
			seen[r.Of] = true
		}
	}
}

func (b *Books) wrongSums(broken report) {
	for id, o := range b.Orders {
		var charged, back int64
		for _, c := range b.Charges[id] {
			charged += c.Total.Amount
		}
		for _, r := range b.Refunds[id] {
			if r.Counts() {
				back += r.Total.Amount
			}
		}
		shown, reserved := sums(o)
		if back > charged {
			broken("refunded too much: order %s was charged %d, and %d went back", id, charged, back)
		}
		if shown != back {
			broken("refund mismatch: order %s shows %d, Stripe gave %d back", id, shown, back)
		}
		if left := o.Total.Amount - shown - reserved; left != o.Left {
			broken("refund mismatch: %d are left of order %s, its row has %d", left, id, o.Left)
		}
		if want := statusAfter(back, o.Total.Amount); o.Status.Charged() && o.Status != want {
			broken("wrong status: order %s is %s, and %d of %d went back", id, o.Status, back, o.Total.Amount)
		}
	}
	for id, all := range b.Refunds {
		if _, known := b.Orders[id]; !known && len(all) > 0 {
			broken("refund mismatch: order %s was refunded and has no row", id)
		}
	}
}

// sums returns what went back of an order as its row shows, and what else may go back.
func sums(o Order) (shown, reserved int64) {
	shown = o.Outside
	for _, i := range o.Refunds {
		switch i.Status {
		case refund.Pending, refund.Succeeded:
			shown += i.Amount
		case refund.Open, refund.Unknown:
			reserved += i.Amount
		case refund.Failed, refund.Refused:
		}
	}
	return shown, reserved
}

// statusAfter returns the status of a charged order of which an amount went back.
func statusAfter(back, charged int64) order.Status {
	switch {
	case back <= 0:
		return order.Paid
	case back < charged:
		return order.PartiallyRefunded
	}
	return order.Refunded
}

func (b *Books) refundOf(id order.ID, i refund.Item) (r Refund, found bool) {
	n := slices.IndexFunc(b.Refunds[id], func(r Refund) bool { return r.ID == i.Refund && r.Of == i.ID })
	if n < 0 {
		return r, false
	}
	return b.Refunds[id][n], true
}

// wrongRefunds returns the refunds whose status is not what Stripe has, and those whose
// events do not lead to it.
func (b *Books) wrongRefunds(broken report) {
	for id, o := range b.Orders {
		last, back := replay(o, broken)
		if shown, _ := sums(o); shown != back {
			broken("event mismatch: the events of order %s give %d back, its row %d", id, back, shown)
		}
		for _, i := range o.Refunds {
			if i.Status != refund.Open && last[i.ID] != i.Status {
				broken("event missing: refund %s of order %s is %s, its last event is %q",
					i.ID, id, i.Status, last[i.ID])
			}
			r, found := b.refundOf(id, i)
			if found && i.Status != refund.Open && i.Status != r.called() ||
				!i.Status.Counts() && i.Status != refund.Open && b.Made(id, i.ID) > 0 {
				broken("wrong status: refund %s of order %s is %s, Stripe has it %q", i.ID, id, i.Status, r.Status)
			}
		}
	}
}

// replay follows the refund events of an order. It returns the last status of each refund
// and what they give back, and reports the events that contradict the row, or each other.
func replay(o Order, broken report) (last map[refund.ID]refund.Status, back int64) {
	last = map[refund.ID]refund.Status{}
	for _, e := range o.Events {
		of, to := refund.ID(e.Refund.ID), refund.Status(e.Refund.Status)
		if e.Refund == (order.RefundEvent{}) {
			continue
		}
		before, changed := last[of]
		if !changed {
			before = refund.Open
		}
		i, known := o.Refund(of)
		if fits := known && i.Amount == e.Refund.Amount && before.Transition(to) == nil; of != "" && !fits {
			broken("wrong event: event %d of order %s has refund %s %s of %d after %s",
				e.Seq, o.OrderID, of, to, e.Refund.Amount, before)
		}
		if before == refund.Pending || before == refund.Succeeded {
			back -= e.Refund.Amount
		}
		if to == refund.Pending || to == refund.Succeeded || e.Refund.Status == order.RefundedOutside {
			back += e.Refund.Amount
		}
		if of != "" {
			last[of] = to
		}
		if want := statusAfter(back, o.Total.Amount); e.To != want {
			broken("wrong event: event %d of order %s makes it %s, want %s", e.Seq, o.OrderID, e.To, want)
		}
	}
	return last, back
}

// unendedRefunds returns the refunds that are open, and the unknown ones whose messages
// are known, although no parked message asks a person to look.
func (b *Books) unendedRefunds(broken report) {
	type key struct {
		order.ID
		refund refund.ID
	}
	asked := map[key]bool{} // false: its message is not parked
	for _, m := range b.Messages {
		if k := (key{m.OrderID(), m.Refund.ID()}); m.IsRefund() {
			asked[k] = asked[k] || b.Parked[m.ID].Reason != ""
		}
	}
	for _, l := range b.Lines {
		if l.ended(refundLine, order.Park) {
			asked[key{order.ID(l.OrderID), refund.ID(l.RefundID)}] = true
		}
	}
	for id, o := range b.Orders {
		for _, i := range o.Refunds {
			parked, known := asked[key{id, i.ID}]
			if !parked && (i.Status == refund.Open || i.Status == refund.Unknown && known) {
				broken("left open: refund %s of order %s is %s, and no message of it is parked", i.ID, id, i.Status)
			}
		}
	}
}

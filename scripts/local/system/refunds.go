package system

import (
	"slices"

	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// refundChecks returns the checks that compare the refunds of the table with those of
// Stripe, with the events and with the messages.
func (b *Books) refundChecks() []check {
	return []check{
		{"I18", "at most one refund that counts per refund id", b.refundedTwice},
		{"I19", "never more back than charged; each order shows what Stripe gave back", b.wrongSums},
		{"I20", "each refund has the status that it has at Stripe, and an event per change", b.wrongRefunds},
		{"I21", "every refund ended, or its message is parked with a reason", b.unendedRefunds},
	}
}

// counts reports whether a refund took money from its charge. Audit does not ask the
// product.
func counts(r stripetest.Refund) bool {
	return r.Status == stripetest.RefundPending || r.Status == stripetest.RefundSucceeded
}

// Made returns how many refunds of Stripe count for a refund id of an order.
func (b *Books) Made(id order.ID, r refund.ID) (n int) {
	for _, made := range b.Refunds[id] {
		if counts(made) && made.Metadata["refundId"] == string(r) {
			n++
		}
	}
	return n
}

func (b *Books) refundedTwice() (broken findings) {
	for id, all := range b.Refunds {
		seen := map[string]bool{}
		for _, r := range all {
			of := r.Metadata["refundId"]
			if n := b.Made(id, refund.ID(of)); of != "" && n > 1 && !seen[of] {
				broken.add("double refund: refund %s of order %s was made %d times", of, id, n)
			}
			seen[of] = true
		}
	}
	return broken.sorted()
}

func (b *Books) wrongSums() (broken findings) {
	for id, a := range b.Accounts {
		var back int64
		for _, r := range b.Refunds[id] {
			if counts(r) {
				back += r.Amount
			}
		}
		if back > a.Charged.Amount {
			broken.add("refunded too much: order %s was charged %d, and %d went back", id, a.Charged.Amount, back)
		}
		if got := a.Refunded(); got != back {
			broken.add("refund mismatch: order %s shows %d, Stripe gave %d back", id, got, back)
		}
		if a.Status.Charged() && a.Status != statusAfter(back, a.Charged.Amount) {
			broken.add("wrong status: order %s is %s, and %d of %d went back", id, a.Status, back, a.Charged.Amount)
		}
	}
	return broken.sorted()
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

// refundMismatches compares each refund of the table with Stripe's list, both ways.
func (b *Books) refundMismatches() (broken findings) {
	for id, a := range b.Accounts {
		for _, i := range a.Items {
			r, found := b.refundOf(id, i)
			if i.Status.Counts() && (!found || r.Amount != i.Amount || r.Currency != string(a.Charged.Currency)) {
				broken.add("ledger mismatch: refund %s of order %s is %s, Stripe has %d %s under %q",
					i.ID, id, i.Status, r.Amount, r.Currency, i.Refund)
			}
		}
	}
	for id, all := range b.Refunds {
		for _, r := range all {
			of := refund.ID(r.Metadata["refundId"])
			if _, known := b.Accounts[id].Item(of); !known && of != "" && counts(r) {
				broken.add("ledger mismatch: refund %s of order %s was made and is not in its row", of, id)
			}
		}
	}
	return broken
}

// refundOf returns the refund that an item names.
func (b *Books) refundOf(id order.ID, i refund.Item) (r stripetest.Refund, found bool) {
	n := slices.IndexFunc(b.Refunds[id], func(r stripetest.Refund) bool {
		return r.ID == string(i.Refund) && r.Metadata["refundId"] == string(i.ID)
	})
	if n < 0 {
		return r, false
	}
	return b.Refunds[id][n], true
}

// wrongRefunds returns the refunds whose status is not what Stripe has, and those whose
// events do not lead to it.
func (b *Books) wrongRefunds() (broken findings) {
	for id, a := range b.Accounts {
		last, money := b.replay(id, &broken)
		for _, i := range a.Items {
			if got := last[string(i.ID)]; i.Status != refund.Open && got.Status != string(i.Status) {
				broken.add("event missing: refund %s of order %s is %s, its last event is %q",
					i.ID, id, i.Status, got.Status)
			}
			if b.miscalled(id, i) {
				broken.add("wrong status: refund %s of order %s is %s, and not so at Stripe", i.ID, id, i.Status)
			}
		}
		if money != a.Refunded() {
			broken.add("event mismatch: the events of order %s give %d back, its row %d", id, money, a.Refunded())
		}
	}
	return broken.sorted()
}

// miscalled reports whether Stripe's refunds contradict the status of an item.
func (b *Books) miscalled(id order.ID, i refund.Item) bool {
	switch i.Status {
	case refund.Pending, refund.Succeeded:
		r, found := b.refundOf(id, i)
		return found && string(r.Status) != string(i.Status)
	case refund.Failed, refund.Refused:
		return b.Made(id, i.ID) > 0
	case refund.Open, refund.Unknown:
	}
	return false
}

// replay follows the refund events of an order. It returns the last one of each refund,
// and what they give back.
func (b *Books) replay(id order.ID, broken *findings) (last map[string]order.RefundEvent, back int64) {
	last = map[string]order.RefundEvent{}
	charged := b.Accounts[id].Charged.Amount
	for _, e := range b.Records[id].Events {
		if e.Refund == (order.RefundEvent{}) {
			continue
		}
		was := last[e.Refund.ID]
		if refund.Status(was.Status).Counts() {
			back -= was.Amount
		}
		if refund.Status(e.Refund.Status).Counts() || e.Refund.Status == order.RefundedOutside {
			back += e.Refund.Amount
		}
		last[e.Refund.ID] = e.Refund
		if want := statusAfter(back, charged); e.To != want {
			broken.add("wrong event: event %d of order %s makes it %s, want %s", e.Seq, id, e.To, want)
		}
	}
	return last, back
}

// unendedRefunds returns the refunds that are open although no parked message asks a
// person to look.
func (b *Books) unendedRefunds() (broken findings) {
	type key struct {
		order.ID
		refund refund.ID
	}
	reasons := map[key]string{} // of the parked messages
	for _, p := range b.Posted {
		if dead, parked := b.Parked[p.MessageID]; parked && p.IsRefund() {
			reasons[key{p.OrderID(), p.Refund.ID()}] = dead.Attributes[sqs.AttrReason].Text
		}
	}
	for id, a := range b.Accounts {
		for _, i := range a.Items {
			if i.Status == refund.Open && reasons[key{id, i.ID}] == "" {
				broken.add("left open: refund %s of order %s, and its message is not parked", i.ID, id)
			}
		}
	}
	return broken.sorted()
}

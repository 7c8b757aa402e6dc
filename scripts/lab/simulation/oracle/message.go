package oracle

import (
	"slices"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// Delivered reports that the queue delivered a message.
func (o *Oracle) Delivered(d Delivery) {
	o.undisturbed[d.ID]++
	if o.undisturbed[d.ID] > maxDeliveries {
		o.fail(SettlesSoon, o.sent[d.Message].ID, "delivery %d was needed without a fault", d.Receives)
	}
}

// WorkerBegins reports that a worker begins to handle a message. If alone, nothing else
// explains why it would make more than one call for a settled order.
func (o *Oracle) WorkerBegins(k *Worker, message int, alone bool) {
	m := &o.sent[message]
	x := o.of(m.ID)
	k.settled = alone && final(x.status) && *x.claimed == *m
}

// WorkerEnds reports the end of a worker.
func (o *Oracle) WorkerEnds(k *Worker, message int) {
	if k.settled && k.calls > 1 {
		o.fail(CheapDuplicate, o.sent[message].ID, "a duplicate of a settled order made %d calls", k.calls)
	}
}

// Acknowledged reports that a message is about to be deleted.
func (o *Oracle) Acknowledged(message int) {
	m := &o.sent[message]
	x := o.of(m.ID)
	x.answered[message] = true
	if x.claimed != nil && *x.claimed != *m {
		o.fail(ConflictParked, m.ID, "message %d has other content and was acknowledged, not parked", message+1)
	}
	if r, known := o.view.Row(m.ID); !known || !final(r.Status) {
		o.fail(AckedWhenDurable, m.ID, "message %d was acknowledged, and the row is not settled", message+1)
	}
}

// Answered reports whether a message was acknowledged or parked since its last redrive.
func (o *Oracle) Answered(message int) bool { return o.of(o.sent[message].ID).answered[message] }

// Redriven reports that a dead letter was moved back, so that it must be answered again.
func (o *Oracle) Redriven(message int) { o.of(o.sent[message].ID).answered[message] = false }

// Parked reports that a worker moves a message to the dead-letter queue.
func (o *Oracle) Parked(k *Worker, d Delivery, why order.Reason) {
	id, now, number := o.sent[d.Message].ID, o.view.Now(), d.Message+1
	x := o.of(id)
	x.answered[d.Message], x.parked[d.Message] = true, why
	if k.known.order == id && k.known.noted != "" && k.known.noted != why {
		o.note(EverythingEnds, id, "the row says "+string(k.known.noted)+" and the message says "+string(why))
	}
	if why == "" {
		o.fail(EverythingEnds, id, "message %d was parked without a reason", number)
	}
	if why == "key_reused" || why == "record_lost" && !o.looksLost(d, id) {
		o.fail(SettlesSoon, id, "message %d was parked, although the table knows its order", number)
	}
	old := now.Sub(d.Sent)+HonestSkew >= Retention-LastDay
	worn := d.Receives >= maxFailures && ownFailure(why) || d.Receives > MaxReceives-lastChances
	if !forPeople(why) && !old && !k.Absurd && !worn {
		o.fail(SettlesSoon, id, "message %d was parked for %s, which passes", number, why)
	}
}

// looksLost reports whether a row looks as if it replaced a lost one: it is younger than
// its message by more than a day, or an earlier message found that, and Stripe has more
// of the order than one unconfirmed intent.
func (o *Oracle) looksLost(d Delivery, id order.ID) bool {
	r, known := o.view.Row(id)
	sent := d.Sent
	if first, err := time.Parse(time.RFC3339, d.FirstSent); err == nil {
		sent = first
	}
	if !known || r.Suspect == "" && r.CreatedAt.Sub(sent) <= Day {
		return false
	}
	waiting, others := 0, 0
	for _, i := range o.view.Stripe().Intents() {
		switch {
		case i.OrderID() != string(id):
		case i.Status == stripetest.StatusRequiresConfirmation:
			waiting++
		default:
			others++
		}
	}
	return o.edited || others > 0 || waiting > 1 // an edit may leave one intent of other content
}

// forPeople reports whether only a person can remove the reason.
func forPeople(r order.Reason) bool {
	return slices.Contains(
		[]order.Reason{"conflict", "mismatch", "refused", "key_reused", "record_lost", "invalid_order"}, r)
}

// ownFailure reports whether an order fails because of itself, and not because of an
// outage.
func ownFailure(r order.Reason) bool { return r == "unconfirmed" || r == "panic" }

// final reports whether an order needs no more work without a message. A refused order
// is tried again when its message comes back.
func final(s order.Status) bool { return s != order.Open && s != order.Refused }

package order_test

import (
	"context"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// deleteRecord deletes the record, as a restore from an older backup does.
func (w *world) deleteRecord() {
	w.store.Delete(w.order.ID())
	w.lost = true
}

// ageMessage sets the age of the message.
func ageMessage(w *world, by time.Duration) { w.sent = w.now.Add(-by) }

// loseRecord processes the order, then loses its record and, for the age of its message,
// the bank's keys.
func (w *world) loseRecord() {
	w.deliver(noFault)
	w.bank.ForgetKeys()
	w.deleteRecord()
	ageMessage(w, 25*time.Hour)
}

// findLost loses the record and lets an old message find its intent. The next message is
// younger than the record that the first one created.
func (w *world) findLost() {
	w.loseRecord()
	w.deliver(noFault)
	w.now = w.now.Add(time.Hour)
	w.sent = w.now
}

// lostCases are orders whose record was lost, and orders that only seem so.
func lostCases() map[string]processCase {
	const lost, lostAgain = "park record_lost open attempt 1 pi_1", "park record_lost open attempt 2 pi_1"
	old := func(w *world) { ageMessage(w, 25*time.Hour) }
	canceled := func(i *order.Intent) { i.State = order.IntentCanceled }
	return map[string]processCase{
		"an old message whose record was lost is parked if the provider knows an intent": {
			before: (*world).loseRecord, want: lost, calls: "begin find release",
		},
		"a redrive after a lost record is parked again": {
			before: func(w *world) { w.loseRecord(); w.deliver(noFault) },
			want:   lostAgain, calls: "begin begin find release",
		},
		"a young message after a lost record was found is parked, too": {
			before: func(w *world) { w.findLost() }, want: lostAgain, calls: "begin begin find release",
		},
		"an intent that was found once stays found if the search does not return it": {
			before: func(w *world) { w.findLost(); w.payments = finds{w.bank, nil} },
			want:   lostAgain, calls: "begin begin find release",
			after: func(w *world) {
				if got := w.record().Suspect; got != "pi_1" {
					w.Errorf("got the suspect %q, want pi_1", got)
				}
			},
		},
		"an intent that still waits is not used in place of the one that was found": {
			before: func(w *world) {
				w.findLost()
				other := w.prepare(w.order, w.prepareAgainKey(1))
				i, err := w.bank.Read(w.Context(), other)
				w.must(err)
				w.payments = finds{w.bank, []order.Intent{i}}
			},
			want: lostAgain, calls: "begin begin find release",
		},
		"the intent of a crashed attempt is used although its record is young": {
			before: func(w *world) {
				old(w)
				w.crashAfter(ordertest.Prepare)
				w.bank.ForgetKeys()
			},
			want: paidLate, calls: "begin begin find bind confirm finish",
		},
		"an intent for different content is not used": {
			before: func(w *world) {
				w.prepare(w.differentContent(), w.prepareKey())
				old(w)
			},
			want: lost, calls: "begin find release",
		},
		"two unconfirmed intents are parked": {
			before: func(w *world) {
				w.prepare(w.order, w.prepareKey())
				w.prepare(w.order, w.prepareAgainKey(1))
				old(w)
			},
			want: lost, calls: "begin find release",
		},
		"an old message of an order without intents is charged": {
			before: old, want: paid, calls: "begin find prepare bind confirm finish",
		},
		"an order whose message is exactly a day old is not searched for": {
			before: func(w *world) { ageMessage(w, 24*time.Hour) },
			want:   paid, calls: "begin prepare bind confirm finish",
		},
		"an order whose record is as old as its message is not searched for": {
			before: func(w *world) {
				w.crashAfter(ordertest.Prepare)
				w.bank.ForgetKeys()
				w.sent, w.now = w.record().CreatedAt, w.now.Add(48*time.Hour)
			},
			want: "done settled paid attempt 2 pi_2", calls: "begin begin prepare bind confirm finish",
		},
		"a failed search charges nothing": {
			before: old, fault: always(failCall(ordertest.Find, refused())),
			want: "redeliver misconfigured transient open attempt 1", calls: "begin find release",
		},
		"a search without a response charges nothing": {
			before: old, fault: always(ordertest.LoseRequestOf(ordertest.Find)),
			want: "redeliver provider_unknown transient open attempt 1", calls: "begin find release",
		},
		"an intent that was canceled before it was bound is prepared again": {
			before: func(w *world) { w.crashAfter(ordertest.Prepare); w.bank.Cancel("pi_1") },
			want:   "done settled paid attempt 2 pi_2", calls: "begin begin prepare prepare bind confirm finish",
		},
		"an order whose intents are all canceled is redelivered": {
			before: func(w *world) { w.change = changeFirst(2, ordertest.Prepare, canceled) },
			want:   "redeliver provider_replayed_failure transient open attempt 1", calls: "begin prepare prepare release",
		},
	}
}

// wrongAnswerCases are providers that return the intent of another order once.
func wrongAnswerCases() map[string]processCase {
	otherOrder := func(i *order.Intent) { i.OrderID = "ORD-2" }
	wrong := func(on ordertest.Call) func(w *world) {
		return func(w *world) { w.change = changeFirst(1, on, otherOrder) }
	}
	return map[string]processCase{
		"one wrong response to prepare is retried": {
			before: wrong(ordertest.Prepare),
			want:   paid, calls: "begin prepare prepare bind confirm finish",
		},
		"one wrong response to confirm is read again": {
			before: wrong(ordertest.Confirm), want: paid, calls: "begin prepare bind confirm read finish",
		},
		"one wrong response to read is retried": {
			before: func(w *world) { w.crashAfter(ordertest.Confirm); wrong(ordertest.Read)(w) },
			want:   takenOver, calls: "begin begin read read finish",
		},
		"an intent that is another order's since its confirm is parked": {
			before: func(w *world) {
				w.change = func(c ordertest.Call, i *order.Intent) {
					if c != ordertest.Prepare {
						otherOrder(i)
					}
				}
			},
			want:  "park mismatch open attempt 1 pi_1",
			calls: "begin prepare bind confirm read read release",
		},
		"a wrong response to a confirm without effect is unconfirmed": {
			before: wrong(ordertest.Confirm), fault: always(failCall(ordertest.Confirm, nil)),
			want:  "redeliver unconfirmed open attempt 1 pi_1",
			calls: "begin prepare bind confirm read release",
		},
	}
}

// changeFirst changes the first n intents that one kind of call returns.
func changeFirst(n int, on ordertest.Call, change func(*order.Intent)) func(ordertest.Call, *order.Intent) {
	return func(c ordertest.Call, i *order.Intent) {
		if c == on && n > 0 {
			n--
			change(i)
		}
	}
}

// finds is a provider whose search returns these intents.
type finds struct {
	order.Payments

	intents []order.Intent
}

func (p finds) Find(context.Context, order.ID) ([]order.Intent, error) { return p.intents, nil }

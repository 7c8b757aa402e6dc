package world

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/stage"
)

// sold returns an order of two mugs for 39.98 USD.
func sold(id order.ID, method string) Message {
	m := Message{ID: id, Customer: "CUST987", Currency: "usd", Payer: "cus_pretend", Method: method}
	m.Lines[0] = SKU{SKU: "MUG", Quantity: 2, Price: 1999}
	return m
}

func one(method string) Case {
	return Case{Messages: []Message{sold("ORD-1", method)}, Gap: oracle.Visibility}
}

func TestTheUsualCourseOfAnOrder(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	want := stage.History{
		{
			At: 0, Who: "producer",
			What: "sends message 1: order ORD-1 of CUST987: 2 MUG at 19.99 USD, cus_pretend pays with pm_card_visa",
		},
		{At: 0, Who: "queue", What: "delivers message 1 to A"},
		{At: 100 * ms, Who: "A", What: "begin ORD-1", Answer: "attempt 1, no intent bound"},
		{At: 200 * ms, Who: "A", What: "prepare under prove/order/ORD-1/prepare", Answer: "pi_000001 requires_confirmation"},
		{At: 300 * ms, Who: "A", What: "bind pi_000001", Answer: "ok"},
		{At: 400 * ms, Who: "A", What: "confirm pi_000001", Answer: "pi_000001 succeeded"},
		{At: 400 * ms, Who: "bank", What: "charges 39.98 USD for pi_000001"},
		{At: 500 * ms, Who: "A", What: "finish ORD-1 as paid", Answer: "ok"},
		{At: 600 * ms, Who: "A", What: "done message 1 (settled)", Answer: "ok"},
	}
	c := Case{Messages: []Message{sold("ORD-1", Visa)}, Gap: time.Hour, Adapter: true}
	w := NewLab().NewWorld(c, func(stage.Kind, int) int { return 0 }).KeepHistory()
	broken := w.Run()
	if diff := cmp.Diff(w.History(), want); diff != "" || broken != nil {
		t.Errorf("broken: %v, (-got +want)\n%s", broken, diff)
	}
}

// endless is a fault at every delivery, for longer than any search lasts.
type endless struct {
	setup  Case
	fault  func(delivery int) Fault
	at     ordertest.Call
	denied permission // from the beginning, instead of a fault
	why    order.Reason
	parked func(age time.Duration, receives int) bool // whether a message is parked in time
}

func endlessFaults() map[string]endless {
	handler, refused := one(Visa), one(NoSuchCard)
	handler.Batch, handler.Adapter, refused.Batch = 1, true, 1
	always := func(f Fault) func(int) Fault { return func(int) Fault { return f } }
	lastMoment := func(age time.Duration, _ int) bool {
		return age >= 6*oracle.Day-oracle.HonestSkew && age < 7*oracle.Day
	}
	return map[string]endless{
		"an outage of Stripe": {
			setup: one(Visa), at: ordertest.Prepare, why: "provider_unavailable", parked: lastMoment,
			fault: always(RateLimited),
		},
		"an outage of the table": {
			setup: one(Visa), at: ordertest.Begin, why: "store_unavailable", parked: lastMoment,
			fault: always(NeverArrives),
		},
		"a bug that only this order meets": {
			setup: handler, at: ordertest.Prepare, why: "panic", fault: always(Panics),
			parked: func(_ time.Duration, receives int) bool { return receives == 20 },
		},
		"a charge that cannot be recorded": {
			setup: one(Visa), denied: putItem, why: "store_unavailable", parked: lastMoment,
		},
		"a claim that is denied": {
			setup: one(Visa), denied: updateItem, why: "store_unavailable", parked: lastMoment,
		},
		"a refused order that cannot be parked": { // so the queue moves it, without a reason
			setup: refused, denied: sendMessage, why: "",
			parked: func(age time.Duration, receives int) bool {
				return age < 7*oracle.Day && receives >= oracle.MaxReceives
			},
		},
		"deaths until shortly before the queue's limit": {
			setup: one(Visa), at: ordertest.Begin, why: "store_unavailable",
			fault: func(delivery int) Fault {
				if delivery < 980 {
					return Dies
				}
				return NeverArrives
			},
			parked: func(_ time.Duration, receives int) bool { return receives > 990 && receives <= oracle.MaxReceives },
		},
	}
}

// A message is parked with a reason before the queue parks it without one, or deletes it,
// and not before waiting is useless.
func TestAMessageWithAnEndlessFaultIsParkedInTimeWithItsReason(t *testing.T) {
	t.Parallel()
	for name, tt := range endlessFaults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.setup.Rare = true
			var w *World
			w = NewLab().NewWorld(tt.setup, func(_ stage.Kind, _ int) int {
				for i, o := range w.lab.options {
					if tt.fault != nil && o.kind == call && o.worker.next.Name == tt.at &&
						o.fault == tt.fault(w.tally[Deliveries]) {
						return i
					}
				}
				return 0
			})
			w.incidents.denial = denial{of: tt.denied, until: epoch().Add(30 * oracle.Day)}
			broken := w.RunUntil(w.deadLetters)
			age, receives := w.Now.Sub(epoch()), w.tally[Deliveries]
			dead := must1(w.queue.Messages(w.Now, w.queue.dead))
			why := order.Reason(dead[0].Attributes[sqs.AttrReason].Text)
			if broken != nil || why != tt.why || !tt.parked(age, receives) {
				t.Errorf("parked for %q after %v and %d deliveries, want %q; broken: %v", why, age, receives, tt.why, broken)
			}
		})
	}
}

// A history ends where the oracle noted the violation that is the result.
func TestAHistoryEndsAtTheNotedViolation(t *testing.T) {
	t.Parallel()
	c := one(Visa)
	c.Messages = append(c.Messages, sold("ORD-2", Visa))
	w := NewLab().NewWorld(c, func(_ stage.Kind, _ int) int { return 0 }).KeepHistory()
	broken := w.RunUntil(func() bool {
		if r, known := w.services.store.Peek("ORD-1"); known && r.Status == order.Paid && !w.oracle.Noted() {
			w.oracle.Calls(&oracle.Worker{}, oracle.Call{Name: ordertest.Release, Detail: "refused"}, w.Now)
		}
		return false
	})
	last := w.History()[len(w.History())-1]
	if broken == nil || broken.Invariant != oracle.EverythingEnds || last.What != "done message 1 (settled)" {
		t.Errorf("got %v after %q, want %s after the reply", broken, last.What, oracle.EverythingEnds)
	}
}

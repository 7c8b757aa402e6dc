package world

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/stage"
)

// sold returns an order of two mugs for 39.98 USD.
func sold(id order.ID, method string) Message {
	m := Message{ID: id, Customer: "CUST987", Currency: "usd", Payer: "cus_pretend", Method: method}
	m.Lines[0] = Article{SKU: "MUG", Quantity: 2, Price: 1999}
	return m
}

func one(method string) Case {
	return Case{Messages: []Message{sold("ORD-1", method)}, Gap: oracle.Visibility}
}

// runChoosing runs a world in which an option that fits is taken as often as given,
// instead of the usual one.
func runChoosing(c Case, times int, fits func(w *World, o option) bool) (*World, *stage.Violation) {
	var w *World
	w = NewLab().NewWorld(c, func(_ stage.Kind, _ int) int {
		for i, o := range w.lab.options {
			if i > 0 && times > 0 && fits(w, o) {
				times--
				return i
			}
		}
		return 0
	})
	w.KeepHistory()
	return w, w.Run()
}

func faultAt(f Fault, c ordertest.Call) func(w *World, o option) bool {
	return func(_ *World, o option) bool { return o.fault == f && o.worker.next.Name == c }
}

func (w *World) status() order.Status {
	r, _ := w.services.store.Peek("ORD-1")
	return r.Status
}

// answered reports whether a line of the history has an answer that contains the text.
func answered(w *World, text string) bool {
	return slices.ContainsFunc(w.history.lines, func(l stage.Line) bool { return strings.Contains(l.Answer, text) })
}

// Each permission is denied for a while in a world of its own, just before it is needed.
func TestAPermissionThatIsDeniedForAWhileCostsNoOrder(t *testing.T) {
	t.Parallel()
	worker, handler := one(TakesDays), one(Visa)
	worker.Denials, handler.Denials, handler.Batch, handler.Rare = true, true, 1, true
	for _, tt := range []struct {
		of    permission
		at    ordertest.Call
		setup Case
	}{
		{updateItem, ordertest.Begin, worker},
		{updateItem, ordertest.Bind, worker},
		{putItem, ordertest.Finish, worker},
		{writeIntents, ordertest.Prepare, worker},
		{writeIntents, ordertest.Confirm, worker},
		{deleteMessage, oracle.Reply, worker},
		{deleteMessage, oracle.Reply, handler},
		{putItem, ordertest.Finish, handler},
	} {
		t.Run(fmt.Sprintf("%s at %s, %d in a batch", tt.of, tt.at, tt.setup.Batch), func(t *testing.T) {
			t.Parallel()
			w, broken := runChoosing(tt.setup, 1, func(w *World, o option) bool {
				current := w.workers.current
				return o.kind == deny && permissions()[o.n] == tt.of && current != nil && current.next.Name == tt.at
			})
			denied := answered(w, "AccessDenied") || answered(w, string(order.KindMisconfigured))
			if s := w.status(); broken != nil || !denied || s == order.Open {
				t.Errorf("status %s, denied: %t, broken: %v\n%v", s, denied, broken, w.History())
			}
		})
	}
}

// A message that cannot be parked comes back, and so does one whose delay cannot be set.
func TestARequestThatTheQueueDeniesIsRetried(t *testing.T) {
	t.Parallel()
	for of, method := range map[permission]string{sendMessage: NoSuchCard, changeVisibility: Visa} {
		c := one(method)
		c.Denials, c.Batch = true, 1
		denied := false
		w, broken := runChoosing(c, 2, func(_ *World, o option) bool {
			if !denied {
				denied = o.kind == deny && permissions()[o.n] == of
				return denied
			}
			return of == changeVisibility && o.fault == NeverArrives && o.worker.next.Name == ordertest.Begin
		})
		if broken != nil || !answered(w, "AccessDenied") || !w.oracle.Answered(0) {
			t.Errorf("%s: broken: %v\n%v", of, broken, w.History())
		}
	}
}

func TestEachPermissionIsNeededByACall(t *testing.T) {
	t.Parallel()
	var got []permission
	for _, name := range []ordertest.Call{
		ordertest.Begin, ordertest.Bind, ordertest.Finish, ordertest.Release, oracle.Settle, oracle.Load,
		ordertest.Prepare, ordertest.Confirm, ordertest.Read, oracle.Park, oracle.Return, oracle.Reply, oracle.Put,
	} {
		got = append(got, needs(oracle.Call{Name: name})...)
	}
	for _, p := range permissions() {
		if !slices.Contains(got, p) {
			t.Errorf("no call needs %s", p)
		}
	}
	got = nil
	for _, v := range []order.Verdict{order.Done, order.Redeliver, order.Park} {
		got = append(got, needs(oracle.Call{Name: oracle.Reply, Subject: string(v)})...)
	}
	if d := cmp.Diff(got, []permission{deleteMessage, changeVisibility, sendMessage}); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

// group returns two orders of one customer, the first of which is given, and one order of
// another customer.
func group(head Message) Case {
	other := sold("ORD-3", Visa)
	other.Customer = "CUST-other"
	return Case{Messages: []Message{head, sold("ORD-2", Visa), other}, FIFO: true, Batch: 3, Gap: oracle.Visibility}
}

func charged(w *World) (ids []string) {
	for _, c := range w.services.stripe.Ledger() {
		ids = append(ids, c.OrderID)
	}
	return ids
}

func TestAFIFOGroupIsChargedInItsOrderAfterAFault(t *testing.T) {
	t.Parallel()
	for _, at := range []ordertest.Call{ordertest.Begin, ordertest.Prepare, ordertest.Bind} {
		w, broken := runChoosing(group(sold("ORD-1", Visa)), 1, faultAt(NeverArrives, at))
		mine := slices.DeleteFunc(charged(w), func(id string) bool { return id == "ORD-3" })
		if d := cmp.Diff(mine, []string{"ORD-1", "ORD-2"}); d != "" || broken != nil {
			t.Errorf("%s is lost: broken: %v, charges (-got +want)\n%s\n%v", at, broken, d, w.History())
		}
	}
}

// A head that cannot be charged is parked, and the group continues. If it cannot be
// parked, the group waits.
func TestAFIFOGroupWaitsForAHeadThatCannotBeParked(t *testing.T) {
	t.Parallel()
	poison := Message{ID: "POISON", Customer: "CUST987", Poison: "{"}
	for name, head := range map[string]Message{
		"a refused order": sold("ORD-1", NoSuchCard), "a message that is not an order": poison,
	} {
		w, broken := runChoosing(group(head), 3, faultAt(NeverArrives, oracle.Park))
		parked := slices.IndexFunc(w.History(), func(l stage.Line) bool {
			return strings.HasPrefix(l.What, "park for") && l.Answer == "ok"
		})
		begun := slices.IndexFunc(w.History(), func(l stage.Line) bool { return l.What == "begin ORD-2" })
		if broken != nil || parked < 0 || begun < parked {
			t.Errorf("%s: parked at line %d, the next order begins at %d, broken: %v\n%v",
				name, parked, begun, broken, w.History())
		}
	}
}

// A deployment with the same order id on the same account changes nothing for ours.
func TestANeighborWithTheSameIDChangesNothing(t *testing.T) {
	t.Parallel()
	for n := range 2 {
		c := one(Visa)
		c.Neighbor, c.Variety = true, n
		w, broken := runChoosing(c, 1, func(_ *World, o option) bool { return o.kind == neighbor })
		if s := w.status(); broken != nil || s != order.Paid || !w.incidents.met || len(charged(w)) != 1+n {
			t.Errorf("status %s, met: %t, charges %v, broken: %v", s, w.incidents.met, charged(w), broken)
		}
	}
}

// An intent of something else that a person writes into a row is never charged, and the
// message is parked for a person.
func TestAWrongIntentInARowIsNeverCharged(t *testing.T) {
	t.Parallel()
	for _, f := range flaws() {
		c := one(Visa)
		c.Messages, c.Mistake = []Message{sold("ORD-2", Visa), sold("ORD-1", Visa)}, true
		w, broken := runChoosing(c, 1, func(w *World, o option) bool {
			return o.kind == edit && o.flaw == f && w.incidents.orders[o.n].id == "ORD-1"
		})
		charges := slices.DeleteFunc(w.services.stripe.Ledger(), func(c stripetest.Charge) bool {
			return c.OrderID != "ORD-1" || !w.oracle.Ours(c.Intent)
		})
		parked := slices.ContainsFunc(w.History(), func(l stage.Line) bool { return l.What == "park message 2 (mismatch)" })
		if !w.incidents.edited || broken != nil || len(charges) > 0 || !parked {
			t.Errorf("%s: written: %t, charges %v, parked: %t, broken: %v\n%v",
				f, w.incidents.edited, charges, parked, broken, w.History())
		}
	}
}

// A response about something else is used at no call, whatever is wrong with it.
func TestAWrongResponseIsNeverUsed(t *testing.T) {
	t.Parallel()
	misled := func(w *World) bool { return slices.Contains(w.Deviations(), string(Mistakes)) }
	for variety := range 5 {
		for _, at := range []ordertest.Call{ordertest.Prepare, ordertest.Confirm, ordertest.Read} {
			c := one(Visa)
			c.Rare, c.Variety = true, variety
			w, broken := runChoosing(c, 2, func(w *World, o option) bool {
				if at == ordertest.Read && w.workers.born == 1 { // an intent must be bound first
					return o.fault == Dies && o.worker.next.Name == ordertest.Bind
				}
				return o.fault == Mistakes && o.worker.next.Name == at && !misled(w)
			})
			if s := w.status(); broken != nil || s != order.Paid || !misled(w) {
				t.Errorf("%s, variety %d: status %s, broken: %v\n%v", at, variety, s, broken, w.History())
			}
		}
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
						o.fault == tt.fault(w.tally.Deliveries) {
						return i
					}
				}
				return 0
			})
			w.incidents.denial = denial{of: tt.denied, until: w.clock.start.Add(30 * oracle.Day)}
			broken := w.RunUntil(w.deadLetters)
			age, receives := w.clock.now.Sub(w.clock.start), w.tally.Deliveries
			dead := must1(w.queue.Messages(w.clock.now, w.queue.dead))
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
			w.oracle.Calls(&oracle.Worker{}, oracle.Call{Name: ordertest.Release, Detail: "refused"}, w.clock.now)
		}
		return false
	})
	last := w.History()[len(w.History())-1]
	if broken == nil || broken.Invariant != oracle.EverythingEnds || last.What != "done message 1 (settled)" {
		t.Errorf("got %v after %q, want %s after the reply", broken, last.What, oracle.EverythingEnds)
	}
}

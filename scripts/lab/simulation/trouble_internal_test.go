package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// chosen plays a world in which the first way that fits is taken whenever it is open, up
// to so often.
func chosen(c Case, times int, fits func(w *World, y way) bool) (*World, *Violation) {
	var w *World
	w = NewLab().World(c, func(int) int {
		for i, y := range w.lab.ways {
			if i > 0 && times > 0 && fits(w, y) {
				times--
				return i
			}
		}
		return 0
	})
	w.Tell()
	return w, w.Run()
}

func denies1(of action, at ordertest.Call) func(w *World, y way) bool {
	return func(w *World, y way) bool {
		return y.does == denies && actions()[y.n] == of && w.current != nil && w.current.at.name == at
	}
}

// Each action is denied for a while in a world of its own, just before it is needed.
func TestAnActionThatIsDeniedForAWhileCostsNoOrder(t *testing.T) {
	t.Parallel()
	people := Case{Messages: []Message{sold(takesDays)}, Denials: true, Gap: visibility}
	handler := Case{Messages: []Message{sold(visa)}, Denials: true, Gap: visibility, Batch: 1, Rare: true}
	for _, tt := range []struct {
		of    action
		at    ordertest.Call
		world Case
	}{
		{updateItem, ordertest.Begin, people},
		{updateItem, ordertest.Bind, people},
		{putItem, ordertest.Finish, people},
		{writeIntents, ordertest.Prepare, people},
		{writeIntents, ordertest.Confirm, people},
		{deleteMessage, reply, people},
		{deleteMessage, reply, handler},
		{putItem, ordertest.Finish, handler},
	} {
		t.Run(fmt.Sprintf("%s at %s, %d in a batch", tt.of, tt.at, tt.world.Batch), func(t *testing.T) {
			t.Parallel()
			w, broken := chosen(tt.world, 1, denies1(tt.of, tt.at))
			refused := slices.ContainsFunc(w.history, func(l Line) bool {
				return strings.Contains(l.Answer, "AccessDenied") || l.Answer == string(order.KindMisconfigured)
			})
			if r, _ := w.row("ORD-1"); broken != nil || !refused || r.Status == order.Open {
				t.Errorf("the order is %s, some call was refused: %t, broken: %v\n%s", r.Status, refused, broken, w.history)
			}
		})
	}
}

// What SQS refuses in a batch: the message that cannot be parked comes back, and so does
// one whose delay cannot be said.
func TestWhatTheQueueDeniesIsTriedAgain(t *testing.T) {
	t.Parallel()
	for of, method := range map[action]string{sendMessage: noSuchCard, changeVisibility: visa} {
		c := Case{Messages: []Message{sold(method)}, Denials: true, Gap: visibility, Batch: 1}
		begun := false
		w, broken := chosen(c, 2, func(_ *World, y way) bool {
			if !begun {
				begun = y.does == denies && actions()[y.n] == of
				return begun
			}
			return of == changeVisibility && y.fault == NeverArrives && y.k.at.name == ordertest.Begin
		})
		refused := slices.ContainsFunc(w.history, func(l Line) bool { return strings.Contains(l.Answer, "AccessDenied") })
		if broken != nil || !refused || !w.oracle.orders[0].answered[0] {
			t.Errorf("%s: refused %t, broken: %v\n%s", of, refused, broken, w.history)
		}
	}
}

func TestARefusedRequestNeedsItsAction(t *testing.T) {
	t.Parallel()
	for _, a := range actions() {
		calls := []call{
			{name: ordertest.Begin},
			{name: ordertest.Bind},
			{name: ordertest.Finish},
			{name: ordertest.Release},
			{name: settle},
			{name: load},
			{name: ordertest.Prepare},
			{name: ordertest.Confirm},
			{name: ordertest.Read},
			{name: park},
			{name: back},
			{name: reply},
		}
		if !slices.ContainsFunc(calls, func(c call) bool { return slices.Contains(c.needs(), a) }) {
			t.Errorf("no call needs %s", a)
		}
	}
	var got []action
	for _, v := range []order.Verdict{order.Done, order.Redeliver, order.Park} {
		got = append(got, call{name: reply, subject: string(v)}.needs()...)
	}
	if d := cmp.Diff(got, []action{deleteMessage, changeVisibility, sendMessage}); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

// group is two orders of one customer, the first of which ends as its payment method
// says, and one of another customer.
func group(head Message) Case {
	second, other := another("ORD-2", visa), another("ORD-3", visa)
	other.Customer = "CUST-other"
	return Case{Messages: []Message{head, second, other}, FIFO: true, Batch: 3, Gap: visibility}
}

// worked lists the orders that were charged, in that order.
func worked(w *World) (ids []string) {
	for _, c := range w.stripe.Ledger() {
		ids = append(ids, c.OrderID)
	}
	return ids
}

func TestAFIFOGroupIsChargedInItsOrderWhateverGoesWrongFirst(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]ordertest.Call{
		"the claim": ordertest.Begin, "the intent": ordertest.Prepare, "the bind": ordertest.Bind,
	} {
		w, broken := chosen(group(sold(visa)), 1, func(_ *World, y way) bool { return y.fault == NeverArrives && y.k.at.name == at })
		mine := slices.DeleteFunc(worked(w), func(id string) bool { return id == "ORD-3" })
		if d := cmp.Diff(mine, []string{"ORD-1", "ORD-2"}); d != "" || broken != nil {
			t.Errorf("%s is lost: broken: %v, charges (-got +want)\n%s\n%s", name, broken, d, w.history)
		}
	}
}

// A head that cannot be charged is parked, and the group goes on; one that cannot be
// parked holds it up.
func TestAFIFOGroupWaitsForWhatCannotBeParked(t *testing.T) {
	t.Parallel()
	poison := Message{ID: "POISON", Customer: "CUST987", Poison: "{"}
	for name, head := range map[string]Message{"a refused order": sold(noSuchCard), "a message that is no order": poison} {
		w, broken := chosen(group(head), 3, func(_ *World, y way) bool { return y.fault == NeverArrives && y.k.at.name == park })
		parked := slices.IndexFunc(w.history, func(l Line) bool { return strings.HasPrefix(l.What, "park for") && l.Answer == "ok" })
		begun := slices.IndexFunc(w.history, func(l Line) bool { return l.What == "begin ORD-2" })
		if broken != nil || parked < 0 || begun < parked {
			t.Errorf("%s: parked at line %d, the next one begins at %d, broken: %v\n%s", name, parked, begun, broken, w.history)
		}
	}
}

func TestAFollowerThatOvertakesIsSeen(t *testing.T) {
	t.Parallel()
	for name, overtakes := range map[string]func(v *invocation){
		"it is worked on": func(v *invocation) {
			v.starts(v.lab.order(v.messages[1].Body))
		},
		"it is acknowledged": func(v *invocation) { v.inOrder([]string{v.messages[1].ID}) },
	} {
		h := byHand(t, Case{Messages: []Message{sold(visa), another("ORD-2", visa)}, FIFO: true, Batch: 2})
		v := &invocation{Worker: h.k, parked: map[int]bool{}, started: map[string]bool{}}
		h.k.in = v
		overtakes(v)
		if got := h.oracle.broken; got == nil || got.Invariant != NeighborsApart {
			t.Errorf("%s: got %v, want %s", name, got, NeighborsApart)
		}
	}
	h := byHand(t, Case{Messages: []Message{sold(visa), another("ORD-2", visa)}, FIFO: true, Batch: 2})
	v := &invocation{Worker: h.k, parked: map[int]bool{0: true}, started: map[string]bool{}}
	h.k.in = v
	v.starts(v.lab.order(v.messages[1].Body))
	v.inOrder([]string{v.messages[0].ID, v.messages[1].ID})
	if got := h.oracle.broken; got != nil {
		t.Errorf("behind one that is parked: got %v", got)
	}
}

// A deployment with the same order id on the same account changes nothing for ours.
func TestANeighborIsNotInTheWay(t *testing.T) {
	t.Parallel()
	for n := range 2 {
		c := Case{Messages: []Message{sold(visa)}, Neighbor: true, Variety: n, Gap: visibility}
		w, broken := chosen(c, 1, func(_ *World, y way) bool { return y.does == neighbors })
		if r, _ := w.row("ORD-1"); broken != nil || r.Status != order.Paid || len(w.strays) != 1 ||
			len(worked(w)) != 1+n {
			t.Errorf("the order is %s, %d intents of the neighbor, charges %v, broken: %v", r.Status, len(w.strays), worked(w), broken)
		}
	}
}

// Whatever intent a person writes into a row, it is not charged, and the order ends with
// a person.
func TestAStrayIntentIsNeverCharged(t *testing.T) {
	t.Parallel()
	for _, kind := range strays() {
		c := Case{Messages: []Message{another("ORD-2", visa), sold(visa)}, Mistake: true, Gap: visibility}
		w, broken := chosen(c, 1, func(w *World, y way) bool {
			return y.does == mistakes && y.stray == kind && w.oracle.orders[y.n].id == "ORD-1"
		})
		charges := len(w.charges("ORD-1"))
		if why := w.oracle.of("ORD-1").dead[1]; !w.mistaken || broken != nil || charges > 0 || why != "mismatch" {
			t.Errorf("%s: written %t, charged %d times, parked for %q, broken: %v\n%s", kind, w.mistaken, charges, why, broken, w.history)
		}
	}
}

// An answer about something else is believed at no call, whatever is wrong with it.
func TestAWrongAnswerIsNeverUsed(t *testing.T) {
	t.Parallel()
	for variety := range 5 {
		for _, at := range []ordertest.Call{ordertest.Prepare, ordertest.Confirm, ordertest.Read} {
			c := Case{Messages: []Message{sold(visa)}, Rare: true, Variety: variety, Gap: visibility}
			w, broken := chosen(c, 2, func(w *World, y way) bool {
				if at == ordertest.Read && w.born == 1 { // first there has to be something to read
					return y.fault == Dies && y.k.at.name == ordertest.Bind
				}
				return y.fault == Mistakes && y.k.at.name == at && !slices.Contains(w.unusual, string(Mistakes))
			})
			if r, _ := w.row("ORD-1"); broken != nil || r.Status != order.Paid ||
				!slices.Contains(w.unusual, string(Mistakes)) {
				t.Errorf("%s, variety %d: the order is %s, broken: %v\n%s", at, variety, r.Status, broken, w.history)
			}
		}
	}
}

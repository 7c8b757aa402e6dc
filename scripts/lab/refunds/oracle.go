package refunds

import (
	"fmt"
	"slices"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/scripts/lab/stage"
)

// The invariants of refunds, and those of package order that a world can break.
const (
	ChargedAndCanceled stage.Invariant = "I4"  // an order is canceled and charged
	MadeOnce           stage.Invariant = "I18" // at most one refund that counts per refundId
	AsAtStripe         stage.Invariant = "I19" // never more back than charged; at rest, account and Stripe agree
	CalledRight        stage.Invariant = "I20" // no refund is called what it is not; one event per change
	Settles            stage.Invariant = "I21" // every refund ends; an unknown one is never repeated
)

// oracle is what the checks remember.
type oracle struct {
	excused   map[refund.ProviderID]bool // made by a request that Stripe executed too late
	twice     bool                       // one of these is the second of its id
	succeeded map[refund.ProviderID]bool // at any time
	disputed  map[order.ID]bool
	accounts  map[order.ID]refund.Account // as of the last check
}

func newOracle() oracle {
	return oracle{
		excused: map[refund.ProviderID]bool{}, succeeded: map[refund.ProviderID]bool{},
		disputed: map[order.ID]bool{}, accounts: map[order.ID]refund.Account{},
	}
}

func (w *World) violated(i stage.Invariant, id order.ID, format string, args ...any) {
	w.Violated(i, string(id), format, args...)
}

// check checks what must hold at every moment, if anything was written.
func (w *World) check() {
	if !w.dirty || w.Broken != nil {
		return
	}
	w.dirty = false
	all := w.bank.Refunds()
	for _, r := range all {
		w.oracle.succeeded[r.ID] = w.oracle.succeeded[r.ID] || r.Status == refund.Succeeded
	}
	for _, o := range w.Orders {
		w.checkMoney(o, all)
		a, err := w.store.Load(w.Context, o.ID)
		if err != nil {
			continue
		}
		if a.Status == order.Canceled && len(w.intents.Charges(o.ID)) > 0 {
			w.violated(ChargedAndCanceled, o.ID, "canceled, and charged %v", w.intents.Charges(o.ID))
		}
		w.checkChanges(w.oracle.accounts[o.ID], a, all)
		w.oracle.accounts[o.ID] = a
	}
}

func (w *World) back(id order.IntentID) (total int64) {
	for _, r := range w.bank.Refunds() {
		if id != "" && r.Intent == id && counts(r) {
			total += r.Total.Amount
		}
	}
	return total
}

// checkMoney checks what Stripe has made, whatever the store contains.
//
// A refund is excused if it is at most half of the charge, and Stripe executed its
// request more than four hours after its last answer on the same connection. Of all
// others, one counts.
func (w *World) checkMoney(o Order, all []refund.Refund) {
	made, counted := map[refund.ID]int{}, map[refund.ID]int{}
	charged, _ := w.orders.Peek(o.ID)
	for _, r := range all {
		if r.Intent == "" || !counts(r) || r.Intent != charged.Intent {
			continue
		}
		made[r.For]++
		if r.For != "" && (2*r.Total.Amount > o.Amount || !w.oracle.excused[r.ID]) {
			counted[r.For]++
		}
	}
	for id, n := range counted {
		if n > 1 {
			w.violated(MadeOnce, o.ID, "refund %s was made %d times", id, n)
		}
	}
	for id, n := range made {
		w.oracle.twice = w.oracle.twice || id != "" && n > 1
	}
	if back := w.back(charged.Intent); back > o.Amount {
		w.violated(AsAtStripe, o.ID, "%d went back of %d", back, o.Amount)
	}
}

func (w *World) checkChanges(before, after refund.Account, all []refund.Refund) {
	changes := 0
	for _, i := range after.Items {
		was, known := before.Item(i.ID)
		if n := left(after, i.ID); !known && i.Status == refund.Open && i.Amount > n {
			w.violated(AsAtStripe, after.OrderID, "refund %s of %d begins, and %d is left", i.ID, i.Amount, n)
		}
		if known && was.Status == i.Status || !known && i.Status == refund.Open {
			continue
		}
		changes++
		if known && was.Status.Transition(i.Status) != nil {
			w.violated(CalledRight, after.OrderID, "refund %s went from %s to %s", i.ID, was.Status, i.Status)
		}
		w.checkCalled(after, i, ours(all, after, i))
	}
	if before.Outside != after.Outside {
		changes++
	}
	for _, i := range before.Items {
		if _, kept := after.Item(i.ID); !kept {
			w.violated(CalledRight, after.OrderID, "refund %s is lost", i.ID)
		}
	}
	if before.Status.Charged() && after.Seq != before.Seq+changes {
		w.violated(CalledRight, after.OrderID, "%d changes, but seq %d to %d", changes, before.Seq, after.Seq)
	}
}

// left returns how much of a charge other refunds than this one leave: what an open or an
// unknown one may have taken is not left.
func left(a refund.Account, but refund.ID) int64 {
	n := a.Charged.Amount - a.Outside
	for _, i := range a.Items {
		switch i.Status {
		case refund.Open, refund.Unknown, refund.Pending, refund.Succeeded:
			if i.ID != but {
				n -= i.Amount
			}
		case refund.Refused, refund.Failed:
		}
	}
	return n
}

// checkExceeds checks a message that was parked because its refund is more than is left.
func (w *World) checkExceeds(t *task) {
	r := t.request
	a, _ := w.store.Load(w.Context, r.OrderID())
	if n := left(a, r.ID()); r.Amount() <= n {
		w.violated(AsAtStripe, a.OrderID, "refund %s of %d is parked, and %d is left", r.ID(), r.Amount(), n)
	}
}

// checkOwner checks a write to a refund against the owner of its claim at that moment. A
// Finish that changes nothing may come late.
func (w *World) checkOwner(a *actor, c refundtest.Call, before refund.Item) {
	after, _ := w.item(*a.request)
	if before.Owner != a.as.Name && after != before {
		w.violated(CalledRight, a.request.OrderID(), "%s of %s writes to refund %s, which %q holds",
			c, a.as.Name, before.ID, before.Owner)
	}
}

func (w *World) checkCalled(a refund.Account, i refund.Item, made []refund.Refund) {
	holds := true
	switch i.Status {
	case refund.Refused:
		holds = !slices.ContainsFunc(made, counts)
	case refund.Succeeded:
		holds = slices.ContainsFunc(made, func(r refund.Refund) bool { return w.oracle.succeeded[r.ID] })
	case refund.Pending:
		holds = len(made) > 0
	case refund.Failed:
		holds = slices.ContainsFunc(made, func(r refund.Refund) bool { return r.Status == refund.Failed })
	case refund.Open, refund.Unknown:
	}
	if !holds && w.Class != Keyless {
		w.violated(CalledRight, a.OrderID, "refund %s of %d is called %s, and Stripe has %v",
			i.ID, i.Amount, i.Status, brief(made))
	}
}

// counts reports whether a refund took money from the charge. The oracle does not ask the
// product.
func counts(r refund.Refund) bool { return r.Status == refund.Pending || r.Status == refund.Succeeded }

func ours(all []refund.Refund, a refund.Account, i refund.Item) (made []refund.Refund) {
	for _, r := range all {
		ids := r.Intent == a.Intent && r.OrderID == a.OrderID && r.Scope == scope && r.For == i.ID
		if ids && r.Total.Amount == i.Amount {
			made = append(made, r)
		}
	}
	return made
}

func brief(all []refund.Refund) []string {
	texts := make([]string, len(all))
	for n, r := range all {
		texts[n] = fmt.Sprintf("%s %s", r.ID, r.Status)
	}
	return texts
}

// statusOf returns what a refund is called, or "" if nothing is known of it.
func (w *World) statusOf(r *refund.Request) refund.Status {
	if r == nil {
		return ""
	}
	i, _ := w.item(*r)
	return i.Status
}

func (w *World) item(r refund.Request) (refund.Item, bool) {
	a, _ := w.store.Load(w.Context, r.OrderID())
	return a.Item(r.ID())
}

// atRest checks what must hold after the last Refresh of every order: account and Stripe
// agree both ways, nothing is open, and the events tell the whole history.
func (w *World) atRest() {
	all := w.bank.Refunds()
	for _, o := range w.Orders {
		a, err := w.store.Load(w.Context, o.ID)
		if err != nil || !a.Status.Charged() {
			continue
		}
		var claimed int64
		for _, i := range a.Items {
			made := ours(all, a, i)
			claimed += w.itemAtRest(a, i, made)
		}
		if back := w.back(a.Intent); a.Refunded() != back || a.Outside != back-claimed {
			w.violated(AsAtStripe, o.ID, "%d went back, %d of it ours; the account has %d and %d outside",
				back, claimed, a.Refunded(), a.Outside)
		}
		if want := orderStatus(a); a.Status != want {
			w.violated(AsAtStripe, o.ID, "%s with %d back of %d, want %s", a.Status, a.Refunded(), o.Amount, want)
		}
		w.checkEvents(a)
	}
}

// itemAtRest checks one refund, and returns how much of it went back: what went back
// twice is outside of the account's refunds.
func (w *World) itemAtRest(a refund.Account, i refund.Item, made []refund.Refund) (back int64) {
	var want []refund.Status // that Stripe's refunds have
	for _, r := range made {
		if counts(r) {
			back += r.Total.Amount
		}
		want = append(want, r.Status)
	}
	if back > 0 {
		want = slices.DeleteFunc(want, func(s refund.Status) bool { return s == refund.Failed })
	}
	switch {
	case i.Status == refund.Open:
		w.violated(Settles, a.OrderID, "refund %s is open at the end", i.ID)
	case len(want) == 0 && i.Status != refund.Refused && i.Status != refund.Unknown,
		len(want) > 0 && !slices.Contains(want, i.Status) && (back > 0 || i.Status != refund.Refused):
		w.violated(AsAtStripe, a.OrderID, "refund %s is %s, and Stripe has %v", i.ID, i.Status, brief(made))
	}
	return min(back, i.Amount)
}

func orderStatus(a refund.Account) order.Status {
	switch back := a.Refunded(); {
	case back == 0:
		return order.Paid
	case back < a.Charged.Amount:
		return order.PartiallyRefunded
	}
	return order.Refunded
}

func (w *World) checkEvents(a refund.Account) {
	r, _ := w.orders.Peek(a.OrderID)
	status, last, outside := order.Open, map[string]string{}, int64(0)
	for n, e := range r.Events {
		if e.Seq != n+1 || e.From != status {
			w.violated(CalledRight, a.OrderID, "event %d: seq %d, from %s, want %s", n+1, e.Seq, e.From, status)
		}
		status = e.To
		if last[e.Refund.ID] = e.Refund.Status; e.Refund.Status == order.RefundedOutside {
			outside += e.Refund.Amount
		}
	}
	for _, i := range a.Items {
		if last[string(i.ID)] != string(i.Status) {
			w.violated(CalledRight, a.OrderID, "refund %s is %s, its event %q", i.ID, i.Status, last[string(i.ID)])
		}
	}
	if len(r.Events) != r.Seq || status != r.Status || outside != a.Outside {
		w.violated(CalledRight, a.OrderID, "%d events for seq %d end in %s with %d outside, want %s with %d",
			len(r.Events), r.Seq, status, outside, r.Status, a.Outside)
	}
}

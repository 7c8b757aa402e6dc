package refunds

import (
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// deviation is a kind of trouble. A random world has only some kinds, because a world
// with all of them rarely has the same one twice.
type deviation int

const (
	fails deviation = iota
	freezes
	refreshes
	overlaps
	comesEarly
	executesNow
	bankChanges
	cancels
	inDashboard
	disputes
	deviationKinds // their number
)

// deviations returns what may happen instead of an actor's next call. Each is one choice,
// and may pick its details.
func (w *World) deviations(a *actor) (all []func()) {
	add := func(kind deviation, possible bool, do func()) {
		if possible && w.Trouble[kind] {
			all = append(all, do)
		}
	}
	faults := w.faultsOf(a.next.kind)
	others := w.others(a)
	early := w.waiting(func(e event) bool { return e.task != nil })
	late := w.waiting(func(e event) bool { return e.late })
	made := w.bank.Refunds()
	unpaid := slices.ContainsFunc(w.Orders, func(o Order) bool { return o.Late })
	for range a.next.kind.weight() {
		add(fails, len(faults) > 0, func() { a.fault = faults[w.choose.pick(len(faults))]; w.run(a) })
	}
	add(freezes, true, func() { w.freeze(a) })
	add(refreshes, true, func() { w.refresh(w.pickOrder()) })
	add(overlaps, len(others) > 0, func() { w.current = others[w.choose.pick(len(others))] })
	add(comesEarly, len(early) > 0, func() { w.take(early[w.choose.pick(len(early))]) })
	add(executesNow, len(late) > 0, func() { w.take(late[w.choose.pick(len(late))]) })
	add(bankChanges, len(made) > 0 && (w.Class != Kind || w.Takes), func() {
		w.changeRefund(made[w.choose.pick(len(made))])
	})
	add(cancels, unpaid, func() { w.cancel(w.pickOrder()) })
	add(inDashboard, w.Class != Kind, func() { w.refundInDashboard(w.pickOrder()) })
	add(disputes, w.Class != Kind, func() { w.dispute(w.pickOrder()) })
	return all
}

// faultsOf returns the faults of this world that a call can have.
func (w *World) faultsOf(k callKind) []fault {
	return slices.DeleteFunc(k.faults(), func(f fault) bool { return !slices.Contains(w.Faults, f) })
}

func (w *World) pickOrder() order.ID { return w.Orders[w.choose.pick(len(w.Orders))].ID }

// others returns the actors beside a that are not frozen.
func (w *World) others(a *actor) (all []*actor) {
	for _, other := range w.actors {
		if other != a && !other.frozen {
			all = append(all, other)
		}
	}
	return all
}

// waiting returns the indexes of events of a kind.
func (w *World) waiting(which func(event) bool) (all []int) {
	for n, e := range w.events {
		if which(e) {
			all = append(all, n)
		}
	}
	return all
}

// delays returns how long actors freeze, and requests are on their way.
func (w *World) delays() []time.Duration {
	if w.Class == Kind {
		return []time.Duration{time.Minute, 16 * time.Minute, 50 * time.Minute}
	}
	return []time.Duration{
		time.Minute, 16 * time.Minute, 3 * time.Hour, 5 * time.Hour, 14 * time.Hour, 25 * time.Hour,
		3 * day, 6 * day,
	}
}

// freeze freezes an actor for a while. In bad worlds its clock may stand still.
func (w *World) freeze(a *actor) {
	d := w.delays()[w.choose.pick(len(w.delays()))]
	stops := w.Class != Kind && w.choose.pick(2) == 1
	w.happens(a.name, fmt.Sprintf("freezes for %v before it can %s", d, a.next.name), "")
	a.frozen = true
	w.current = w.awake()
	w.at(w.now.Add(d), event{do: func() {
		a.frozen, w.current = false, a
		if stops {
			a.skew -= d
		}
		w.happens(a.name, "goes on", "")
	}})
}

// sendLate lets the nth failed request of the bank be executed later, or never. arrives
// is true of a request that is on its way, and false of one that Stripe answered with a
// 500; answered is when Stripe last answered on its connection.
func (w *World) sendLate(n int, arrives bool, answered time.Time) {
	after := append(w.delays(), 0)
	delay := after[w.choose.pick(len(after))]
	if delay == 0 {
		return // never
	}
	w.at(w.now.Add(delay), event{late: true, do: func() {
		made := len(w.bank.Refunds())
		w.bank.CompleteOne(n)
		w.dirty = true
		w.happens("Stripe", "executes a request whose answer was lost or a 500", "")
		if all := w.bank.Refunds(); len(all) > made && arrives && w.now.Sub(answered) > lateArrival {
			w.oracle.excused[all[made].ID] = true
		}
	}})
}

// lateArrival is the part of a key's life that the product leaves to requests on their
// way.
const lateArrival = 4 * time.Hour

// changeRefund lets the customer's bank take or return a refund.
func (w *World) changeRefund(r refund.Refund) {
	to := refund.Failed
	if r.Status == refund.Pending && (w.Class == Kind || w.choose.pick(2) == 0) {
		to = refund.Succeeded
	}
	if r.Status == refund.Failed || r.Status == to || w.Class == Kind && r.Status == refund.Succeeded {
		return
	}
	w.bank.Set(r.ID, to)
	w.dirty = true
	w.happens("bank", fmt.Sprintf("%s of refund %s is %s", r.ID, r.For, to), "")
}

// refundInDashboard gives back some of what is left without the product.
func (w *World) refundInDashboard(id order.ID) {
	r, _ := w.orders.Peek(id)
	left := r.Total.Amount - w.back(r.Intent)
	if r.Intent == "" || len(w.intents.Charges(id)) == 0 || left < 2 {
		return
	}
	amount := []int64{left / 2, left, 1}[w.choose.pick(3)]
	w.bank.InDashboard(r.Intent, order.Money{Amount: amount, Currency: r.Total.Currency})
	w.dirty = true
	w.happens("Dashboard", fmt.Sprintf("gives back %d of %s", amount, id), "")
}

// dispute disputes a charge, or ends its dispute.
func (w *World) dispute(id order.ID) {
	r, _ := w.orders.Peek(id)
	if w.oracle.disputed[id] = !w.oracle.disputed[id]; w.oracle.disputed[id] {
		w.bank.Dispute(r.Intent)
	} else {
		w.bank.WinDispute(r.Intent)
	}
	w.happens("bank", fmt.Sprintf("%s is disputed: %t", id, w.oracle.disputed[id]), "")
}

// happens adds a line to the history.
func (w *World) happens(who, what, answer string) {
	if w.lines != nil {
		*w.lines = append(*w.lines, Line{w.now.Sub(epoch()), who, what, answer})
	}
}

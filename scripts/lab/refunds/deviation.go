package refunds

import (
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/lab/stage"
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

// deviations appends what may happen instead of an actor's next call. Each is one choice,
// and may have details.
func (w *World) deviations(all []stage.Option) []stage.Option {
	a := w.Current
	add := func(kind deviation, possible bool, do func()) {
		if possible && w.Trouble[kind] {
			all = append(all, stage.Option{Do: do})
		}
	}
	faults := slices.DeleteFunc(slices.Clone(a.Next.Faults), func(f stage.Fault) bool {
		return !slices.Contains(w.Faults, f)
	})
	others := w.Others()
	early := w.waiting(func(e *stage.Event) bool { _, is := e.For.(*task); return is })
	delayed := w.waiting(func(e *stage.Event) bool { return e.For == late{} })
	made := w.bank.Refunds()
	unpaid := slices.ContainsFunc(w.Orders, func(o Order) bool { return o.Late })
	for range w.weight(a.Next) {
		add(fails, len(faults) > 0, func() { w.Call(a, one(w, faults)) })
	}
	add(freezes, true, func() { w.freeze(a) })
	add(refreshes, true, func() { w.refresh(one(w, w.Orders).ID) })
	add(overlaps, len(others) > 0, func() { w.Current = one(w, others) })
	add(comesEarly, len(early) > 0, func() { w.Happen(one(w, early)) })
	add(executesNow, len(delayed) > 0, func() { w.Happen(one(w, delayed)) })
	add(bankChanges, len(made) > 0 && (w.Class != Kind || w.Takes), func() { w.changeRefund(one(w, made)) })
	add(cancels, unpaid, func() { w.cancel(one(w, w.Orders).ID) })
	add(inDashboard, w.Class != Kind, func() { w.refundInDashboard(one(w, w.Orders).ID) })
	add(disputes, w.Class != Kind, func() { w.dispute(one(w, w.Orders).ID) })
	return all
}

func one[T any](w *World, all []T) T { //nolint:ireturn // T is concrete at every call
	return all[w.Pick(stage.Detail, len(all))]
}

// weight is how much more often than another deviation a call fails in random worlds. The
// answer to a create matters most.
func (w *World) weight(c stage.Call) int {
	if !w.Complete && len(c.Faults) == len(create.faults()) {
		return 5
	}
	return 1
}

func (w *World) waiting(which func(*stage.Event) bool) (all []*stage.Event) {
	for _, e := range w.Events {
		if which(e) {
			all = append(all, e)
		}
	}
	return all
}

func (w *World) skew() time.Duration {
	if w.Class == Kind || w.FaultFree {
		return 0
	}
	all := []time.Duration{0, 0, 0, 0, 30 * time.Hour, -30 * time.Hour, time.Hour, -time.Hour}
	if w.Complete {
		all = all[3:]
	}
	return all[w.Pick(stage.Variety, len(all))]
}

func (w *World) gaps() []time.Duration {
	if w.Class == Aged {
		return []time.Duration{16 * time.Minute, 19*time.Hour + 50*time.Minute, 25 * time.Hour, 29 * time.Hour}
	}
	return []time.Duration{
		16 * time.Minute, 0, time.Minute, time.Hour, 10 * time.Hour, 19*time.Hour + 50*time.Minute, 25 * time.Hour,
		29 * time.Hour, 3 * day, 6 * day,
	}
}

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
func (w *World) freeze(a *stage.Actor) {
	d := one(w, w.delays())
	w.Freeze(a, d, w.Class != Kind && w.Pick(stage.Detail, 2) == 1)
}

// sendLate lets the nth failed request of the bank be executed later, or never. arrives
// is true of a request that is on its way, and false of one that Stripe answered with a
// 500; answered is when Stripe last answered on its connection.
func (w *World) sendLate(n int, arrives bool, answered time.Time) {
	delay := one(w, append(w.delays(), 0))
	if delay == 0 {
		return // never
	}
	w.At(w.Now.Add(delay), late{}, func() {
		made := len(w.bank.Refunds())
		w.bank.CompleteOne(n)
		w.dirty = true
		w.Add("Stripe", "executes a request whose answer was lost or a 500", "")
		if all := w.bank.Refunds(); len(all) > made && arrives && w.Now.Sub(answered) > lateArrival {
			w.oracle.excused[all[made].ID] = true
		}
	})
}

// lateArrival is the part of a key's life that the product leaves to requests on their
// way.
const lateArrival = 4 * time.Hour

// changeRefund lets the customer's bank take or return a refund.
func (w *World) changeRefund(r refund.Refund) {
	to := refund.Failed
	if r.Status == refund.Pending && (w.Class == Kind || w.Pick(stage.Detail, 2) == 0) {
		to = refund.Succeeded
	}
	if r.Status == refund.Failed || r.Status == to || w.Class == Kind && r.Status == refund.Succeeded {
		return
	}
	w.bank.Set(r.ID, to)
	w.dirty = true
	w.Add("bank", fmt.Sprintf("%s of refund %s is %s", r.ID, r.For, to), "")
}

// refundInDashboard gives back some of what is left without the product.
func (w *World) refundInDashboard(id order.ID) {
	r, _ := w.orders.Peek(id)
	left := r.Total.Amount - w.back(r.Intent)
	if r.Intent == "" || len(w.intents.Charges(id)) == 0 || left < 2 {
		return
	}
	amount := one(w, []int64{left / 2, left, 1})
	w.bank.InDashboard(r.Intent, order.Money{Amount: amount, Currency: r.Total.Currency})
	w.dirty = true
	w.Add("Dashboard", fmt.Sprintf("gives back %d of %s", amount, id), "")
}

func (w *World) dispute(id order.ID) {
	r, _ := w.orders.Peek(id)
	if w.oracle.disputed[id] = !w.oracle.disputed[id]; w.oracle.disputed[id] {
		w.bank.Dispute(r.Intent)
	} else {
		w.bank.WinDispute(r.Intent)
	}
	w.Add("bank", fmt.Sprintf("%s is disputed: %t", id, w.oracle.disputed[id]), "")
}

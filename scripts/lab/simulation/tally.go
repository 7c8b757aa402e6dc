package simulation

import (
	"cmp"
	"slices"

	"orderonce/adapters/stripe/stripetest"
)

// Tally counts what happened in worlds.
type Tally struct {
	Worlds, Steps, Deliveries, Charges, Declines int
	Adapter, Handler                             int // worlds with the deployed Stripe adapter and batch handler
	Faults                                       map[Fault]int
	Events                                       map[string]int // what else happened that is not usual
}

func (t *Tally) add(o Tally) {
	t.Worlds += o.Worlds
	t.Steps += o.Steps
	t.Deliveries += o.Deliveries
	t.Charges += o.Charges
	t.Declines += o.Declines
	t.Adapter += o.Adapter
	t.Handler += o.Handler
	if t.Faults == nil {
		t.Faults, t.Events = map[Fault]int{}, map[string]int{}
	}
	for f, n := range o.Faults {
		t.Faults[f] += n
	}
	for e, n := range o.Events {
		t.Events[e] += n
	}
}

// names of the events that are counted.
func (d does) String() string {
	return [...]string{
		"step", "delivery", "turn", "late arrival", "redrive", "refresh", "cancel in the Dashboard", "customer pays",
		"bank clears", "bank bounces", "keys forgotten", "shown twice", "outage", "row edited by mistake",
		"action denied", "action allowed again", "neighbor with the same id",
	}[d]
}

// trouble names what is not usual about a choice.
func (w *World) trouble(y way) string {
	switch {
	case y.fault != None:
		return string(y.fault)
	case y.does == delivers && y.old:
		return "older release"
	case y.does == delivers && y.n > 0:
		return "wrong clock"
	case y.does == delivers:
		return "overlapping delivery"
	case y.does == denies:
		return y.does.String() + ": " + string(actions()[y.n])
	case y.does == mistakes:
		return y.does.String() + ": an intent " + string(y.stray)
	}
	return y.does.String()
}

// step counts what is done next.
func (t *Tally) step(y way) {
	t.Steps++
	switch {
	case y.fault != None:
		if t.Faults == nil {
			t.Faults = map[Fault]int{}
		}
		t.Faults[y.fault]++
	case y.does == delivers:
		t.Deliveries++
		if y.old {
			t.event("older release")
		}
		if y.n > 0 {
			t.event("wrong clock")
		}
	case y.does != goes:
		t.event(y.does.String())
	}
}

func (t *Tally) event(name string) {
	if t.Events == nil {
		t.Events = map[string]int{}
	}
	t.Events[name]++
}

// tally is what happened in a world so far.
func (w *World) tally() Tally {
	t := w.done
	t.Worlds = 1
	for _, c := range w.stripe.Ledger() {
		if c.Outcome == stripetest.Charged {
			t.Charges++
		} else {
			t.Declines++
		}
	}
	t.Adapter, t.Handler = int(bit(w.Adapter)), int(bit(w.Batch > 0))
	return t
}

// Count is how often something happened.
type Count struct {
	What  string
	Times int
}

// Unusual lists what went wrong, the most frequent first.
func (t *Tally) Unusual() (all []Count) {
	for f, n := range t.Faults {
		all = append(all, Count{string(f), n})
	}
	for e, n := range t.Events {
		all = append(all, Count{e, n})
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(b.Times-a.Times, cmp.Compare(a.What, b.What)) })
	return all
}

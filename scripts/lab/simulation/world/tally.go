package world

import "orderonce/adapters/stripe/stripetest"

// Tally counts what happened in worlds.
type Tally struct {
	Worlds, Steps, Deliveries, Charges, Declines int
	Adapter, Handler                             int // worlds with the deployed Stripe adapter and batch handler
	Webhooks, Looks, Publications                int // deliveries of events, and runs of the others
	Faults                                       map[Fault]int
	Events                                       map[string]int // deviations that are not faults of a call
}

// Add adds another tally.
func (t *Tally) Add(o Tally) {
	t.Worlds += o.Worlds
	t.Steps += o.Steps
	t.Deliveries += o.Deliveries
	t.Charges += o.Charges
	t.Declines += o.Declines
	t.Adapter += o.Adapter
	t.Handler += o.Handler
	t.Webhooks += o.Webhooks
	t.Looks += o.Looks
	t.Publications += o.Publications
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

// step counts an option that was taken. deviates means that it is not the usual one.
func (t *Tally) step(o option, deviates bool) {
	t.Steps++
	switch o.kind { //nolint:exhaustive // the others are no tasks
	case event, eventAgain:
		t.Webhooks++
	case reconcile:
		t.Looks++
	case publish:
		t.Publications++
	}
	switch {
	case o.fault != None:
		count(&t.Faults, o.fault)
	case o.kind == deliver:
		t.Deliveries++
		if o.old || o.n > 0 {
			count(&t.Events, o.deviation())
		}
	case o.kind == event || o.kind == reconcile || o.kind == publish:
		if deviates {
			count(&t.Events, o.deviation())
		}
	case o.kind != call:
		count(&t.Events, string(o.kind))
	}
}

func count[K comparable](m *map[K]int, k K) {
	if *m == nil {
		*m = map[K]int{}
	}
	(*m)[k]++
}

// Tally returns what happened so far.
func (w *World) Tally() Tally {
	t := w.tally
	t.Worlds = 1
	for _, c := range w.services.stripe.Ledger() {
		if c.Outcome == stripetest.Charged {
			t.Charges++
		} else {
			t.Declines++
		}
	}
	t.Adapter, t.Handler = int(bit(w.setup.Adapter)), int(bit(w.setup.Batch > 0))
	return t
}

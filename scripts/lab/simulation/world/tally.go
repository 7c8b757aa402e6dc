package world

import "orderonce/adapters/stripe/stripetest"

// Tally counts what happened in worlds: the counters below, and every fault and other
// deviation by its name.
type Tally map[string]int

// The counters that are no deviations.
const (
	Worlds       = "worlds"
	Steps        = "steps"
	Deliveries   = "deliveries"
	Charges      = "charges"
	CardDeclines = "declines"
	Handled      = "worlds with the deployed batch handler"
	Webhooks     = "webhooks"
	Looks        = "reconcile runs"
	Publications = "publications"
)

// Counters returns the counters that are no deviations.
func Counters() []string {
	return []string{Worlds, Handled, Webhooks, Looks, Publications, Steps, Deliveries, Charges, CardDeclines}
}

// Add adds another tally.
func (t *Tally) Add(o Tally) {
	if *t == nil {
		*t = Tally{}
	}
	for what, n := range o {
		(*t)[what] += n
	}
}

// step counts an option that was taken. deviates means that it is not the usual one.
func (t Tally) step(o option, deviates bool) {
	t[Steps]++
	task := true
	switch o.kind { //nolint:exhaustive // the others are no tasks
	case deliver:
		t[Deliveries]++
	case event, eventAgain:
		t[Webhooks]++
	case reconcile:
		t[Looks]++
	case publish:
		t[Publications]++
	default:
		task = false
	}
	switch {
	case o.fault != None:
		t[string(o.fault)]++
	case o.kind == deliver && (o.old || o.n > 0),
		deviates && (o.kind == event || o.kind == reconcile || o.kind == publish):
		t[o.deviation()]++
	case o.kind != call && (!task || o.kind == eventAgain):
		t[string(o.kind)]++
	}
}

// Tally returns what happened so far.
func (w *World) Tally() Tally {
	t := Tally{Worlds: 1, Handled: int(bit(w.setup.Batch > 0))}
	t.Add(w.tally)
	for _, c := range w.services.stripe.Ledger() {
		if c.Outcome == stripetest.Charged {
			t[Charges]++
		} else {
			t[CardDeclines]++
		}
	}
	return t
}

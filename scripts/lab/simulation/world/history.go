package world

import (
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/stage"
)

type history struct {
	lines  stage.History
	marked bool
	noted  int // how many lines lead to the first noted violation
}

// KeepHistory makes the world record its history.
func (w *World) KeepHistory() *World {
	w.Record(&w.history.lines)
	return w
}

// History returns what happened, if KeepHistory was called before the run.
func (w *World) History() stage.History { return w.history.lines }

// markNoted remembers where the first noted violation is in the history. more is the
// number of lines that the current call still adds.
func (w *World) markNoted(more int) {
	if h := &w.history; w.oracle.Noted() && !h.marked {
		h.marked, h.noted = true, len(h.lines)+more
	}
}

func (w *World) cutHistory() {
	w.history.lines = w.history.lines[:min(w.history.noted, len(w.history.lines))]
}

// happens reports something that no worker did.
func (w *World) happens(who, what string) {
	w.disturb()
	if w.Recording() {
		w.Add(who, what, "")
	}
}

// disturb reports that something unusual happened, after which there may be dead letters
// again.
func (w *World) disturb() {
	w.oracle.Disturbed()
	w.incidents.redriven = false
}

func (w *World) ledgerLength() int {
	if !w.Recording() {
		return 0
	}
	return w.services.stripe.Attempts()
}

func (w *World) addCharges(seen int) {
	if !w.Recording() {
		return
	}
	for _, c := range w.services.stripe.Ledger()[seen:] {
		what := "declines the card of "
		if c.Outcome == stripetest.Charged {
			what = "charges " + order.Money{Amount: c.Amount, Currency: order.Currency(c.Currency)}.String() + " for "
		}
		w.Add("bank", what+c.Intent, "")
	}
}

// Tally counts what happened in worlds: the counters below, and every fault and other
// deviation by its name.
type Tally map[string]int

// The counters that are no deviations.
const (
	Worlds        = "worlds"
	Steps         = "steps"
	Deliveries    = "deliveries"
	Charges       = "charges"
	CardDeclines  = "declines"
	Handled       = "worlds with the deployed batch handler"
	Webhooks      = "webhooks"
	ReconcileRuns = "reconcile runs"
	Publications  = "publications"
)

// Counters returns the counters that are no deviations.
func Counters() []string {
	return []string{
		Worlds, Handled, Webhooks, ReconcileRuns, Publications, Steps, Deliveries, Charges, CardDeclines,
	}
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

// step counts an option that was taken. deviates means that it is not the default one.
func (t Tally) step(o option, deviates bool) {
	t[Steps]++
	task := true
	switch o.kind { //nolint:exhaustive // the others are no tasks
	case deliver:
		t[Deliveries]++
	case event, eventAgain:
		t[Webhooks]++
	case reconcile:
		t[ReconcileRuns]++
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

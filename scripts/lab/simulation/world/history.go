package world

import (
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/stage"
)

// history is what happened in a world.
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

// ledgerLength returns the length of Stripe's ledger, for addCharges.
func (w *World) ledgerLength() int {
	if !w.Recording() {
		return 0
	}
	return w.services.stripe.Attempts()
}

// addCharges adds the new lines of Stripe's ledger to the history.
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

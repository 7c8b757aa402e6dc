package watch

import (
	"context"
	"maps"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// An order is audited when nothing has happened to it for some time: once for what must
// hold at once, and once more for what other functions do later.
const (
	restsAfter   = 2 * time.Second
	settledAfter = 30 * time.Second
)

// later reports whether an invariant is checked only when an order has been at rest for
// long: events and receipts follow a transition, and what a customer or a bank decides
// reaches the row by a webhook, or by the schedule.
func (l *line) later(invariant string) bool {
	switch invariant {
	case "I16", "I17", "I23":
		return true
	case "I4", "I15":
		return l.row.Status == order.ActionRequired || l.row.Status == order.Pending ||
			l.row.Status == order.Declined
	}
	return false
}

type lights struct {
	claims  []invariants.Invariant
	checked map[string]int      // orders, by invariant
	broken  map[string][]string // of leakLight and stockLight
	counted bool                // the stock was compared since the last change
}

// The invariants that no order alone shows.
const (
	leakLight  = "I13"
	stockLight = "I22"
)

func newLights() lights {
	claims := slices.DeleteFunc(invariants.All(), func(i invariants.Invariant) bool {
		// I5 needs the log, I11 is about the end of faults, and requests by HTTP are not seen.
		return !i.Checked() || slices.Contains([]string{"I5", "I11", "I24"}, i.ID)
	})
	return lights{claims: claims, checked: map[string]int{}, broken: map[string][]string{}}
}

func (w *Watch) audit(ctx context.Context, s *system.System) {
	w.mu.Lock()
	resting := w.resting()
	w.mu.Unlock()
	for _, l := range resting {
		w.readReceipts(ctx, s, l)
		w.mu.Lock()
		w.auditOne(l)
		w.mu.Unlock()
	}
	w.auditStock(ctx, s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.showLights()
}

func (w *Watch) resting() (due []*line) {
	now := w.now()
	for _, l := range append([]*line{w.nameless}, w.byN...) {
		rest := now.Sub(l.since)
		first, second := l.audits == 0 && rest > restsAfter, l.audits == 1 && rest > settledAfter
		if (first || second) && len(l.live)+len(l.working)+l.calls[AtStripe]+l.calls[AtTable] == 0 {
			due = append(due, l)
		}
	}
	return due
}

// readReceipts reads the receipts of an order that was audited before. Those of an order
// that has just come to rest may follow.
func (w *Watch) readReceipts(ctx context.Context, s *system.System, l *line) {
	w.mu.Lock()
	id, wanted := order.ID(l.ID), l.audits == 1
	w.mu.Unlock()
	if s.Receipts == nil || id == "" || !wanted {
		return
	}
	b := invariants.Books{Orders: map[order.ID]invariants.Order{id: {}}}
	if s.ReadReceipts(ctx, &b) != nil {
		return // the context has ended: the engine has no faults here
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.books.Receipts, l.books.Doubts = b.Receipts, b.Doubts
}

func (w *Watch) auditOne(l *line) {
	l.books.Orders, l.books.Log = map[order.ID]invariants.Order{}, l.logged.String()
	if l.row.Status != "" {
		l.books.Orders[l.row.OrderID] = l.row
	}
	for _, c := range l.books.Check() {
		if l.later(c.ID) && l.audits == 0 {
			continue
		}
		if l.audits == 0 || l.later(c.ID) {
			w.lights.checked[c.ID]++
		}
		for i := range c.Broken {
			c.Broken[i] = l.because(c.Broken[i])
		}
		if len(c.Broken) > 0 && len(l.findings[c.ID]) == 0 {
			w.say(Bad, c.ID+" broken: "+c.Broken[0])
		}
		if c.ID != "I1" || len(c.Broken) == 0 { // a second charge is described when it is made
			l.findings[c.ID] = c.Broken
		}
	}
	l.audits++
}

func (w *Watch) showLights() {
	shown := []Light{}
	for _, c := range w.lights.claims {
		light := Light{ID: c.ID, Claim: c.Claim, Orders: w.lights.checked[c.ID]}
		light.Broken = append(light.Broken, w.nameless.findings[c.ID]...)
		for _, l := range slices.Backward(w.byN) { // the newest are shown
			light.Broken = append(light.Broken, l.findings[c.ID]...)
		}
		light.Broken = append(light.Broken, w.lights.broken[c.ID]...)
		light.Broken = light.Broken[:min(len(light.Broken), 5)]
		shown = append(shown, light)
	}
	w.shown.Lights = shown
}

// auditStock compares the stock with every order, when all of them are at rest. What the
// operator has delivered is not known here: each SKU's units are taken as complete.
func (w *Watch) auditStock(ctx context.Context, s *system.System) {
	books, due := w.stockBooks()
	if !due || s.ReadStock(ctx, &books) != nil {
		return
	}
	books.Delivered = map[string]int64{}
	for sku, stock := range books.Stock {
		books.Delivered[sku] = stock.Available + stock.Reserved + stock.Sold
	}
	for _, c := range books.Check() {
		if c.ID == stockLight {
			w.mu.Lock()
			w.lights.broken[c.ID], w.lights.checked[c.ID] = c.Broken, len(books.Orders)
			w.mu.Unlock()
		}
	}
}

// stockBooks returns the orders, and false if some are not at rest or if nothing has
// changed.
func (w *Watch) stockBooks() (b invariants.Books, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b = invariants.Books{
		Orders: map[order.ID]invariants.Order{}, Charges: map[order.ID][]invariants.Charge{},
	}
	atRest := !slices.ContainsFunc(w.byN, func(l *line) bool { return l.audits == 0 })
	due = atRest && !w.lights.counted
	w.lights.counted = atRest
	for _, l := range w.byN {
		if l.row.Status != "" {
			b.Orders[l.row.OrderID] = l.row
			b.Messages = append(b.Messages, l.books.Messages...)
		}
		maps.Copy(b.Charges, l.books.Charges)
	}
	return b, due
}

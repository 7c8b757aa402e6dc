// Package verify checks the invariants on what really happened: it spreads rows, Stripe's
// objects, events and log lines over files by order, fills the books of one order after
// the other, and asks scripts/invariants and package audit. It has no rule of its own,
// and depends on neither AWS nor HTTP.
//
// Read read.go (what is read), history.go (the books of one order) and this file.
package verify

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/orders/audit"
)

// Source is a kind of input.
type Source string

// The sources.
const (
	Rows   Source = "rows"
	Stripe Source = "Stripe"
	Events Source = "events"
	Logs   Source = "logs"
)

// basis is what shows an invariant of one order.
type basis struct {
	needs   []Source
	history bool   // it needs every event item, and the table keeps them for 90 days
	why     string // it is not checked, or only in part
}

const kept = 90 * 24 * time.Hour // docs/reference/row.md

func basisOf(id string) basis {
	return map[string]basis{
		"I1": {needs: []Source{Stripe}}, "I18": {needs: []Source{Stripe}},
		"I2": {needs: []Source{Rows, Stripe}}, "I4": {needs: []Source{Rows, Stripe}},
		"I15": {needs: []Source{Rows, Stripe}}, "I17": {needs: []Source{Rows, Stripe}},
		"I19": {needs: []Source{Rows, Stripe}}, "I20": {[]Source{Rows, Stripe}, true, ""},
		"I5": {[]Source{Rows, Logs}, true, ""}, "I21": {needs: []Source{Rows, Logs}},
		"I7": {[]Source{Rows}, true, ""}, "I8": {[]Source{Rows}, true, ""},
		"I9":  {[]Source{Logs}, false, "by the verdicts of log lines"},
		"I13": {[]Source{Logs}, false, "by what secrets look like; no customerId is known"},
		"I16": {[]Source{Rows, Events}, true, ""},
		"I3":  {why: "needs the messages and the queues"}, "I6": {why: "needs the messages and the queues"},
		"I22": {why: "is about all orders of a SKU"}, "I23": {why: "needs receipts and e-mails"},
		"I24": {why: "needs the requests"}, "I11": {why: "is about the end of faults"},
		"I10": {why: "make prove checks it"}, "I12": {why: "make prove checks it"}, "I14": {why: "make prove checks it"},
	}[id]
}

// Finding is a place where an invariant is broken.
type Finding struct {
	Invariant string `json:"invariant"`
	Detail    string `json:"detail"`
}

// Report is what was found about one order, with what happened to it. OrderID is "" for a
// log line that names no order.
type Report struct {
	OrderID  order.ID  `json:"orderId,omitempty"`
	Findings []Finding `json:"findings"`
	Timeline []Moment  `json:"timeline,omitempty"`
}

// Judged is an invariant, and the number of places that break it.
type Judged struct {
	ID      string `json:"id"`
	Checked bool   `json:"checked"`
	Broken  int    `json:"broken"`
	Note    string `json:"note,omitempty"` // why it is not checked, or how far
}

// Summary counts what was read and found.
type Summary struct {
	Read       map[Source]int `json:"read"`
	Skipped    int            `json:"skipped"` // of other scopes, modes or applications
	Orders     int            `json:"orders"`  // of the window
	InProgress int            `json:"inProgress"`
	Expired    int            `json:"expired"` // too old for their events
	Broken     int            `json:"broken"`  // orders
	Invariants []Judged       `json:"invariants"`
}

// Verifier checks what a Folder has.
type Verifier struct {
	Window  audit.Window // of the creation of an order; the zero Window is every time
	Rest    time.Time    // an order that changed after it is in progress
	Now     time.Time
	Have    map[Source]bool // what was read to its end
	Ordered bool            // events were read in the order of their acceptance
	Found   func(Report) error
	mode    order.Mode // of Stripe's objects; rows of the other one are left out
}

// Run checks every order, part by part, and calls Found for each with findings.
func (v *Verifier) Run(f *Folder) (Summary, error) {
	s := Summary{Read: f.read, Skipped: f.skipped}
	broken := map[string]int{"I13": f.leaks}
	v.mode = f.mode
	err := f.Flush()
	for n := 0; n < audit.Parts && err == nil; n++ {
		err = v.part(f, n, &s, broken)
	}
	for _, i := range invariants.All() {
		j := Judged{ID: i.ID, Broken: broken[i.ID], Note: basisOf(i.ID).why}
		missing := v.missing(i.ID)
		if j.Checked = missing == "" && basisOf(i.ID).needs != nil; missing != "" {
			j.Note = "without " + missing
		}
		if i.ID == "I16" && j.Checked && !v.Ordered {
			j.Note = "but for the order: --in-order"
		}
		s.Invariants = append(s.Invariants, j)
	}
	return s, err
}

// missing names a source that an invariant needs and that was not read.
func (v *Verifier) missing(id string) string {
	for _, of := range basisOf(id).needs {
		if !v.Have[of] {
			return string(of)
		}
	}
	return ""
}

func (v *Verifier) part(f *Folder, n int, s *Summary, broken map[string]int) error {
	orders := map[order.ID][]entry{}
	for e, err := range audit.Lines[entry](f.Files, n) {
		if err != nil {
			return fmt.Errorf("read part %d: %w", n, err)
		}
		orders[e.OrderID] = append(orders[e.OrderID], e)
	}
	for _, id := range slices.Sorted(maps.Keys(orders)) {
		h := newHistory(id, orders[id], v.Ordered)
		found := v.check(s, h)
		for _, finding := range found {
			broken[finding.Invariant]++
		}
		if len(found) == 0 {
			continue
		}
		s.Broken++
		if err := v.Found(Report{id, found, h.moments}); err != nil {
			return err
		}
	}
	return nil
}

func (v *Verifier) check(s *Summary, h *history) (found []Finding) {
	created := h.record.CreatedAt
	for n := 0; h.sides.Row == nil && n < len(h.moments) && created.IsZero(); n++ {
		created = h.moments[n].At
	}
	switch readable := h.problem == ""; {
	case v.mode != "" && h.record.Mode != "" && h.record.Mode != v.mode:
		s.Skipped++
		return nil
	case readable && v.Window != (audit.Window{}) && !v.Window.Contains(created):
		return nil
	case readable && h.changed.After(v.Rest):
		s.Orders, s.InProgress = s.Orders+1, s.InProgress+1
		return nil
	}
	s.Orders++
	compared, scope := audit.Result{}, order.Scope("")
	for _, p := range h.sides.Payments {
		scope = p.Scope
	}
	if h.sides.Row != nil || len(h.sides.Payments) > 0 {
		compared = audit.Compare(h.sides, scope, v.Now)
	}
	expired := created.Before(v.Now.Add(-kept))
	switch {
	case compared.InProgress:
		s.InProgress++
		return nil
	case h.problem != "":
		return []Finding{{"I4", fmt.Sprintf("%s: order %s", audit.RowUnreadable, h.id)}}
	case expired:
		s.Expired++
	}
	for _, r := range h.books.Check() {
		if of := basisOf(r.ID); of.needs == nil || v.missing(r.ID) != "" || expired && of.history {
			continue
		}
		for _, detail := range r.Broken {
			found = append(found, Finding{r.ID, detail})
		}
	}
	if len(found) > 0 || v.missing("I4") != "" {
		return found
	}
	for _, f := range compared.Findings { // what the books do not compare, such as fingerprints
		if f.Class != audit.RefundUnknown { // both sides agree
			found = append(found, Finding{"I4", fmt.Sprintf("%s: order %s: %s", f.Class, h.id, f.Detail)})
		}
	}
	return found
}

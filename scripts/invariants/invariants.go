// Package invariants is the list of docs/design.md: what must hold of a system at rest,
// each as a pure function of its books. It knows the rules of the business alone: who
// runs a system reads its table, its queues and Stripe's ledger, and fills in the books.
//
// The checks decide by themselves what follows from what and do not ask package order, so
// that they are a second opinion about the product.
package invariants

import (
	"fmt"
	"io"
	"slices"
)

// Invariant is a promise of docs/design.md.
type Invariant struct {
	ID    string // such as "I1"
	Claim string // how its row in docs/design.md begins

	check func(*Books, report) // nil: books at rest do not show it, the lab checks each step
	has   func(*Books) bool    // whether the books have what it is about; nil: always
}

// Checked reports whether books at rest show the invariant.
func (i Invariant) Checked() bool { return i.check != nil }

// All returns every invariant in the order of its number.
func All() []Invariant {
	return []Invariant{
		{"I1", "at most one successful charge per orderId, ever", (*Books).chargedTwice, nil},
		{"I2", "the charge is the claimed amount and currency", (*Books).wrongAmount, nil},
		{
			"I3", "every message ends in a settled or refused order, or in the dead-letter queue with a reason",
			(*Books).unended, nil,
		},
		{"I4", "at rest, table and Stripe's ledger agree, both ways", (*Books).ledgerMismatches, nil},
		{"I5", "nothing is acknowledged before its outcome is durable", (*Books).lostAcks, (*Books).hasLines},
		{"I6", "received = acknowledged + redelivered + parked", nil, nil},
		{"I7", "no transition but those in the diagram", (*Books).invalidTransitions, nil},
		{
			"I8", "exactly one event item per transition, and per change of a dispute",
			(*Books).missingEvents, nil,
		},
		{"I9", "the same orderId with other content is never charged, always parked", (*Books).lostConflicts, nil},
		{"I10", "a poison message never delays or repeats its neighbors", nil, nil},
		{
			"I11", "with faults off, everything settles",
			(*Books).unsettled, func(b *Books) bool { return b.Ended },
		},
		{"I12", "a duplicate of a settled order costs one DynamoDB call and no Stripe call", nil, nil},
		{"I13", "no secret, card number or personal detail in any log line", (*Books).leaks, nil},
		{"I14", "the same seed gives the same history", nil, nil},
		{
			"I15", `no order shows "declined" if it was charged or only needs authentication`,
			(*Books).wrongDeclines, nil,
		},
		{
			"I16", "every transition is published at least once, in order for each order",
			(*Books).unpublished, func(b *Books) bool { return b.Bus != nil },
		},
		{"I17", "no order waits forever once faults end", (*Books).leftWaiting, nil},
		{"I18", "at most one refund that counts per refundId", (*Books).refundedTwice, nil},
		{
			"I19", "never more back than charged; at rest an order shows what Stripe gave back",
			(*Books).wrongSums, nil,
		},
		{
			"I20", "no refund is called succeeded, failed or refused wrongly; one event per change",
			(*Books).wrongRefunds, nil,
		},
		{"I21", "every refund ends: made, failed, refused, or unknown", (*Books).unendedRefunds, nil},
		{
			"I22", "no order is charged without its stock, and nothing is lost, reserved twice or sold twice",
			(*Books).unbalancedStock, func(b *Books) bool { return b.Stock != nil },
		},
		{
			"I23", "at most one e-mail per receipt, none of an unpaid order, and every doubt is listed",
			(*Books).wrongReceipts, func(b *Books) bool { return b.Receipts != nil },
		},
		{
			"I24", "an order that is put again by HTTP is answered the same or with a later state",
			(*Books).wrongAnswers, func(b *Books) bool { return b.Requests != nil },
		},
	}
}

func (b *Books) hasLines() bool { return b.Lines != nil }

// Result is an invariant, and each place where it is broken.
type Result struct {
	ID, Claim string
	Broken    []string
}

// Check checks every invariant that the books show, in the order of All.
func (b *Books) Check() (results []Result) {
	for _, i := range All() {
		if i.Checked() && (i.has == nil || i.has(b)) {
			results = append(results, Result{i.ID, i.Claim, b.findings(i.check)})
		}
	}
	return results
}

// Show prints results, each with at most five of its violations, and returns the ids of
// the broken invariants.
func Show(w io.Writer, results []Result) (broken []string) {
	fmt.Fprintln(w, "\nInvariants (docs/design.md):")
	for _, r := range results {
		mark := "ok    "
		if len(r.Broken) > 0 {
			mark, broken = "BROKEN", append(broken, r.ID)
		}
		fmt.Fprintf(w, "  %s %-4s %s\n", mark, r.ID, r.Claim)
		for _, b := range r.Broken[:min(len(r.Broken), 5)] {
			fmt.Fprintf(w, "              %s\n", b)
		}
		if more := len(r.Broken) - 5; more > 0 {
			fmt.Fprintf(w, "              and %d more\n", more)
		}
	}
	return broken
}

// report adds a place where an invariant is broken.
type report func(format string, args ...any)

// findings returns what a check reports, sorted.
func (b *Books) findings(check func(*Books, report)) (all []string) {
	check(b, func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
	slices.Sort(all)
	return all
}

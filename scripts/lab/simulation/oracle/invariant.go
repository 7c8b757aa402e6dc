package oracle

import (
	"fmt"

	"orderonce/domain/order"
)

// Invariant is the number of an invariant of docs/design.md.
type Invariant string

// The invariants that the oracle checks, most serious first. I13 is about logs.
const (
	ChargedOnce      Invariant = "I1"  // at most one successful charge per order, ever
	ChargedAmount    Invariant = "I2"  // the charge has the claimed amount and currency
	ConflictParked   Invariant = "I9"  // same id, other content: not charged, parked, the first order untouched
	NoFalseDecline   Invariant = "I15" // no order shows "declined" if it was charged or only needs authentication
	BooksAgree       Invariant = "I4"  // at rest, table and ledger agree
	AckedWhenDurable Invariant = "I5"  // nothing is acknowledged before its outcome is durable
	AsAllowed        Invariant = "I7"  // only the transitions of the diagram
	OneEventEach     Invariant = "I8"  // one event per transition
	NeighborsApart   Invariant = "I10" // a poison message never delays or repeats its neighbors
	AllAnswered      Invariant = "I6"  // received = acknowledged + redelivered + parked
	EverythingEnds   Invariant = "I3"  // every message ends in a settled order, or is parked with a reason
	NoneForgotten    Invariant = "I17" // no order waits for ever: it gets its outcome, or is reported
	PublishedInOrder Invariant = "I16" // every transition is published, at least once and in order for each order
	SettlesSoon      Invariant = "I11" // without faults, everything settles within two deliveries and one lease
	CheapDuplicate   Invariant = "I12" // a duplicate of a settled order costs one store call and no Stripe call
	SameHistory      Invariant = "I14" // the same seed gives the same history
)

// Invariants returns every invariant that a simulated world can break, most serious
// first.
func Invariants() []Invariant {
	return []Invariant{
		ChargedOnce, ChargedAmount, ConflictParked, NoFalseDecline, BooksAgree, AckedWhenDurable, AsAllowed,
		OneEventEach, NeighborsApart, AllAnswered, EverythingEnds, NoneForgotten, PublishedInOrder, SettlesSoon,
		CheapDuplicate, SameHistory,
	}
}

// Violation is a broken invariant.
type Violation struct {
	Invariant Invariant
	Order     order.ID
	Detail    string
}

// String returns the violation in one line, in the form that guards/break parses.
func (v Violation) String() string {
	return fmt.Sprintf("%s broken for order %s: %s", v.Invariant, v.Order, v.Detail)
}

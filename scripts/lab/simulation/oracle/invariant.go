package oracle

import (
	"orderonce/scripts/lab/stage"
)

type invariant = stage.Invariant

// The invariants that the oracle checks, most serious first. I13 is about logs.
const (
	ChargedOnce      invariant = "I1"  // at most one successful charge per order, ever
	ChargedAmount    invariant = "I2"  // the charge has the claimed amount and currency
	ConflictParked   invariant = "I9"  // same id, other content: not charged, parked, the first order untouched
	NoFalseDecline   invariant = "I15" // no order shows "declined" if it was charged or only needs authentication
	BooksAgree       invariant = "I4"  // at rest, table and ledger agree
	AckedWhenDurable invariant = "I5"  // nothing is acknowledged before its outcome is durable
	AsAllowed        invariant = "I7"  // only the transitions of the diagram
	OneEventEach     invariant = "I8"  // one event per transition
	NeighborsApart   invariant = "I10" // a poison message never delays or repeats its neighbors
	AllAnswered      invariant = "I6"  // received = acknowledged + redelivered + parked
	EverythingEnds   invariant = "I3"  // every message ends in a settled order, or is parked with a reason
	NoneForgotten    invariant = "I17" // no order waits for ever: it gets its outcome, or is reported
	PublishedInOrder invariant = "I16" // every transition is published, at least once and in order for each order
	SettlesSoon      invariant = "I11" // without faults, everything settles within two deliveries and one lease
	CheapDuplicate   invariant = "I12" // a duplicate of a settled order costs one store call and no Stripe call
	SameHistory      invariant = "I14" // the same seed gives the same history
)

// Invariants returns every invariant that a simulated world can break, most serious
// first.
func Invariants() []stage.Invariant {
	return []stage.Invariant{
		ChargedOnce, ChargedAmount, ConflictParked, NoFalseDecline, BooksAgree, AckedWhenDurable, AsAllowed,
		OneEventEach, NeighborsApart, AllAnswered, EverythingEnds, NoneForgotten, PublishedInOrder, SettlesSoon,
		CheapDuplicate, SameHistory,
	}
}

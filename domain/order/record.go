package order

import (
	"fmt"
	"time"
)

// MaxLease is the longest that one worker may hold an order: as long as a function can run at all
// (Lambda quotas: 900 seconds).
const MaxLease = 15 * time.Minute

// MaxSkew is how far two clocks may be apart before one of them is called broken.
const MaxSkew = 5 * time.Minute

// Lease is one worker's word that it will be done by Until. It only saves needless work: what keeps two workers from
// charging is the owner, a fencing token that is new for each Begin call and checked by every later write.
type Lease struct {
	Owner       string // 128 random bits
	From, Until time.Time
}

// Claim is an order that this attempt may work on until another attempt begins it.
type Claim struct {
	Order     Order // with the fingerprint that the record carries
	Lease     Lease
	Attempt   int       // counts the claims of the order, from 1
	Intent    IntentID  // bound by an earlier attempt; "" if none is: then no money has moved
	CreatedAt time.Time // when the order's first claim wrote the record
}

// NewClaim returns the claim on o under l whose record, as Begin wrote it, is r.
//
// The claim's order has the record's fingerprint. The fingerprint is among the words that
// Prepare sends under the order's idempotency key, and a provider refuses other words under a
// known key: so an order that the previous release began must be prepared with the fingerprint
// that the previous release wrote, although this release would write another.
func NewClaim(r Record, o Order, l Lease) Claim {
	o.fingerprint = r.Fingerprint
	return Claim{Order: o, Lease: l, Attempt: r.Attempt, Intent: r.Intent, CreatedAt: r.CreatedAt}
}

// Record is what the store knows of an order.
type Record struct {
	OrderID     ID
	CustomerID  string // "" if Recreate wrote the record and no message has come since
	Total       Money
	Fingerprint Fingerprint
	Status      Status
	Owner       string // "" when nobody holds it
	Attempt     int
	Until       time.Time // the end of the owner's lease
	Intent      IntentID  // "": no money has moved
	Mode        Mode      // of the bound intent; "" if none is bound, or if an early release bound it
	Failure     string    // of a declined, canceled or waiting order: the provider's code
	LastError   string    // the reason of the last attempt that did not settle it
	Seq         int       // how many transitions out of a state it has made
	CreatedAt   time.Time
	UpdatedAt   time.Time
	DueAt       time.Time // when to look at it again; zero when it waits for nothing
	Events      []Event   // oldest first; filled by Load only
}

// Event is one transition out of a state: the order's history, and what the outbox publishes.
type Event struct {
	Seq      int
	From, To Status
	Intent   IntentID
	Failure  string
	At       time.Time
}

// LoadRecord checks a record that comes out of a store, so that a row that somebody edited by hand is an error and
// not a wrong decision: ErrCorrupt, or ErrUnknownVersion if its status is one that this release does not know.
func LoadRecord(r Record) (Record, error) {
	_, err := ParseStatus(string(r.Status))
	switch {
	case !ValidID(string(r.OrderID)):
		err = fmt.Errorf("%w: its id is not an order id", ErrCorrupt)
	case r.Status == "":
		err = fmt.Errorf("%w: it has no status", ErrCorrupt)
	case err != nil:
	case r.Attempt < 1 || r.Seq < 0:
		err = fmt.Errorf("%w: attempt %d, seq %d", ErrCorrupt, r.Attempt, r.Seq)
	case r.Fingerprint == "":
		err = fmt.Errorf("%w: it has no fingerprint", ErrCorrupt)
	case r.Status != Open && r.Intent == "":
		err = fmt.Errorf("%w: it is %s without an intent", ErrCorrupt, r.Status)
	}
	if err != nil {
		return Record{}, fmt.Errorf("record of order %q: %w", r.OrderID, err)
	}
	return r, nil
}

// CheckClaim says why a claim was refused, from the record that refused it: ErrUnknownVersion, ErrConflict,
// *SettledError or *InProgressError, in this order. nil means that the order is ours: the record carries our own
// owner, because the answer to our write was lost; or nobody's lease is running, and it can be claimed.
func CheckClaim(r Record, o Order, l Lease) error {
	same, known := r.Fingerprint.Matches(o)
	switch {
	case !known:
		return ErrUnknownVersion
	case !same:
		return ErrConflict
	case r.Status != Open:
		return &SettledError{Record: r}
	case r.Owner == l.Owner:
		return nil
	case held(r.Until, l.From):
		return &InProgressError{Until: r.Until}
	}
	return nil
}

// held reports whether a lease until then still counts at now. One that ends later than any honest lease could was
// written by a broken clock, and must not lock the order for years.
func held(until, now time.Time) bool {
	return !until.Before(now) && !until.After(now.Add(MaxLease+MaxSkew))
}

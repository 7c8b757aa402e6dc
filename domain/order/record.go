package order

import (
	"cmp"
	"fmt"
	"time"
)

// MaxLease is the longest lease: the longest time that a function can run (Lambda quotas:
// 900 seconds).
const MaxLease = 15 * time.Minute

// MaxSkew is the largest difference between two correct clocks.
const MaxSkew = 5 * time.Minute

// Lease reserves an order for one worker until Until. It saves work; safety comes from
// Owner, a fencing token that is new for each Begin and that every later write checks.
type Lease struct {
	Owner       string // 128 random bits
	From, Until time.Time
	Trace       Trace // of the message
}

// Claim is the right of one attempt to work on an order until another attempt begins it.
type Claim struct {
	Record // as Begin left it, with the intent that is bound since

	Order    Order    // with the fingerprint that the record carries
	Found    IntentID // of a record that was lost; Release records it as the Suspect
	Short    string   // the SKU that could not be reserved, or TooManySKUs; "" if none is
	Unlisted bool     // the store has no SKU Short
}

// NewClaim returns the claim on o, from the record that Begin wrote.
//
// The claim's order carries the record's fingerprint, which the previous release may have
// written: Prepare sends it, and the provider refuses other parameters under a known key.
func NewClaim(r Record, o Order) Claim {
	o.fingerprint = r.Fingerprint
	r.OrderID = o.ID()
	return Claim{Record: r, Order: o}
}

// Record is an order as the store keeps it.
type Record struct {
	OrderID     ID
	CustomerID  string // "" if Recreate wrote the record and no message arrived since
	Total       Money
	Fingerprint Fingerprint
	Status      Status
	Owner       string     // of the current claim; "" if there is none
	Attempt     int        // number of claims, from 1
	Until       time.Time  // end of the owner's lease
	Intent      IntentID   // bound intent; "": no money has moved
	Suspect     IntentID   // found for the order while none was bound: a record that named it was lost
	Mode        Mode       // of the bound intent; "" if none is bound, or an early release bound it
	Failure     string     // of a declined, canceled, refused or waiting order: the provider's code
	LastError   string     // the reason of the last attempt that did not settle it
	ParkedAt    time.Time  // when its message was moved to the dead-letter queue; zero if it was not
	Dispute     Dispute    // the newest one of the intent's charge; zero if there is none
	Stock       Quantities // reserved for the order; nil if none are, or the store does not track them
	Seq         int        // number of events
	CreatedAt   time.Time
	UpdatedAt   time.Time
	DueAt       time.Time // when to recheck it; zero if it waits for nothing
	Trace       Trace     // of the first claim that had one
	Events      []Event   // oldest first; filled by Load only
}

// LoadRecord validates a record that was read from a store, so that a record edited by
// hand is an error and not a wrong decision. It returns ErrCorrupt, or ErrUnknownVersion
// for a status that this release does not know.
func LoadRecord(r Record) (Record, error) {
	_, err := ParseStatus(string(r.Status))
	switch {
	case !ValidID(string(r.OrderID)):
		err = fmt.Errorf("%w: invalid order id", ErrCorrupt)
	case r.Status == "":
		err = fmt.Errorf("%w: missing status", ErrCorrupt)
	case err != nil:
	case r.Attempt < 1 || r.Seq < 0:
		err = fmt.Errorf("%w: attempt %d, seq %d", ErrCorrupt, r.Attempt, r.Seq)
	case r.Fingerprint == "":
		err = fmt.Errorf("%w: missing fingerprint", ErrCorrupt)
	case r.Intent == "" && !r.Status.MayLackIntent():
		err = fmt.Errorf("%w: status %s without an intent", ErrCorrupt, r.Status)
	default:
		err = cmp.Or(r.Dispute.validate(), r.Stock.validate())
	}
	if err != nil {
		return Record{}, fmt.Errorf("record of order %q: %w", r.OrderID, err)
	}
	return r, nil
}

// CheckClaim returns why the record does not allow a claim: ErrUnknownVersion,
// ErrConflict, *SettledError or *InProgressError, in this order. It returns nil if the
// order can be claimed because no lease is running, and if the record already carries the
// lease's owner because the answer to our write was lost.
func CheckClaim(r Record, o Order, l Lease) error {
	same, known := r.Fingerprint.Matches(o)
	switch {
	case !known:
		return ErrUnknownVersion
	case !same:
		return ErrConflict
	case r.Status != Open && r.Status != Refused:
		return &SettledError{Record: r}
	case r.Owner == l.Owner:
		return nil
	case LeaseRunning(r.Until, l.From):
		return &InProgressError{Until: r.Until}
	}
	return nil
}

// LeaseRunning reports whether a lease until then is running at now. A lease that ends
// later than any correct clock could have written is ignored, so that a broken clock does
// not lock the order for years. Stores keep times to the millisecond.
func LeaseRunning(until, now time.Time) bool {
	return !until.Truncate(time.Millisecond).Before(now.Truncate(time.Millisecond)) &&
		!until.After(now.Add(MaxLease+MaxSkew))
}

// LastChange returns the time of the record's last transition, or of its first claim.
func (r Record) LastChange() time.Time {
	if n := len(r.Events); n > 0 {
		return r.Events[n-1].At
	}
	return r.CreatedAt
}

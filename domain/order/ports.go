package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Claims is how a worker takes an order, does its work and lets go. Every write is conditional: it happens whole, or
// leaves nothing behind. An error that a method does not name means that the write may or may not have happened;
// the next Begin finds out. ordertest.TestStore is this contract as a test.
type Claims interface {
	// Begin takes the order for the lease, or takes over one whose lease has ended. The claim is what NewClaim makes
	// of the record. It refuses with what CheckClaim says: ErrUnknownVersion if a newer release wrote the
	// record, ErrConflict if another order has this id, *SettledError if it is not open any more, *InProgressError if
	// somebody's lease is running. It returns ErrCorrupt for a record that no store wrote.
	Begin(ctx context.Context, o Order, l Lease) (Claim, error)

	// Bind writes the one intent that may ever be confirmed for this order, and its mode. It returns nil also if
	// this intent is bound already, and ErrClaimLost if the claim was lost or another intent is bound.
	Bind(ctx context.Context, c Claim, i Intent, at time.Time) error

	// Finish settles the order, adds one event and ends the claim, all or nothing. It returns nil also if the record
	// already says this status with this intent, ErrClaimLost if the claim is not ours any more or the outcome is not that
	// of the bound intent, and a *TransitionError for a status that an open order cannot take.
	Finish(ctx context.Context, c Claim, o Outcome, at time.Time) error

	// Release ends the claim of an attempt that did not settle the order, and notes why. It returns ErrClaimLost if
	// the claim is not ours any more.
	Release(ctx context.Context, c Claim, why Reason, at time.Time) error
}

// Records is for those who look at an order from outside its processing: operators, webhooks, the reconciler.
type Records interface {
	// Load returns the record with its events, as of now and not of a moment ago. It returns ErrNotFound if there is
	// none, ErrUnknownVersion for a status that this release does not know, and ErrCorrupt for a record that no store wrote.
	Load(ctx context.Context, id ID) (Record, error)

	// Settle writes what the provider said later. It is guarded by the status, seq and intent of r as loaded:
	// it returns ErrStale if the record has changed since, a *TransitionError for a change that nobody drew, and nil,
	// changing nothing, if the record already says this status with this intent.
	Settle(ctx context.Context, r Record, o Outcome, at time.Time) error

	// Recreate writes an open record bound to r.Intent where the store lost it: there is no record, or an open one
	// with r's fingerprint, without an intent and without a running lease. It takes the order's id, total,
	// fingerprint, intent and mode from r, and keeps attempts and events that are there. It returns nil, changing
	// nothing, if this intent is bound already. It refuses with what CheckRestore says: ErrConflict for another
	// fingerprint, ErrUnknownVersion for one in another version, *MismatchError for another bound intent,
	// *SettledError for another status, *InProgressError for a running lease.
	Recreate(ctx context.Context, r Record, at time.Time) error
}

// Payments moves money. A decline is an Intent, not an error; every error is a *PaymentError, whose ErrorKind says what may have
// happened. Unavailable, Unknown and Misconfigured can come of every call; each method names what else can.
// ordertest.TestPayments is this contract as a test.
type Payments interface {
	// Prepare makes an unconfirmed intent for the order: no money can move yet. The same key gets the same intent as
	// long as the provider remembers the key, and as the intent is now: somebody may have canceled it since.
	// Replayed: the key holds a failure. KeyReused: it was used with other content, or with the order's fingerprint in
	// another version. Refused: the provider takes no such order.
	Prepare(ctx context.Context, o Order, k Key) (Intent, error)

	// Confirm moves the money, with the payment method that Prepare named and no other. An intent that succeeded
	// cannot succeed again, and one that was declined is not tried again: both are returned as they are now, also under
	// a key that was used before. KeyReused: the key was used for another intent. Refused: the provider will not confirm
	// it, which is no proof that nobody else has.
	Confirm(ctx context.Context, id IntentID, k Key) (Intent, error)

	// Read returns the intent as the provider has it now, never an older copy. An intent that the provider does not
	// know, or will not show, is Misconfigured: it gave us this id.
	Read(ctx context.Context, id IntentID) (Intent, error)

	// Find returns the intents that were prepared for an order in the provider's scope, in any state, found by the order's
	// id. What was prepared within the last hours may be missing: the provider's search lags.
	Find(ctx context.Context, id ID) ([]Intent, error)
}

// Sentinels: which one it is says everything.
var (
	ErrConflict       = errors.New("order id already used with different content")
	ErrClaimLost      = errors.New("claim lost to another attempt")
	ErrStale          = errors.New("concurrent update of the record")
	ErrNotFound       = errors.New("order not found")
	ErrUnknownVersion = errors.New("record written by a newer release")
	ErrCorrupt        = errors.New("corrupt record")
	ErrNoIntent       = errors.New("no intent bound: no money has moved")
)

// RecordLostError is a claim on an order that the provider knows and the store does not: an intent exists, but the record, which
// is younger than the message by more than a day, names none. A restore from backup or a deletion took the record away.
type RecordLostError struct{ Intent IntentID }

// Error names the intent.
func (e *RecordLostError) Error() string {
	return fmt.Sprintf("record lost: intent %s was prepared for this order, but its record names no intent", e.Intent)
}

// SettledError is a claim on an order that is not open any more. Record carries no events.
type SettledError struct{ Record Record }

// Error names the status.
func (e *SettledError) Error() string { return "order already settled: " + string(e.Record.Status) }

// InProgressError is a claim on an order that somebody else holds.
type InProgressError struct{ Until time.Time }

// Error names the end of the lease.
func (e *InProgressError) Error() string {
	return "order in progress: leased to another attempt until " + e.Until.UTC().Format(time.RFC3339)
}

// ErrorKind says what a failed call to the provider means for the order.
type ErrorKind string

// The troubles.
const (
	Unavailable   ErrorKind = "unavailable"   // nothing happened; later it may
	Unknown       ErrorKind = "unknown"       // money may have moved
	Replayed      ErrorKind = "replayed"      // the provider repeated an old failure: this key is burnt
	Misconfigured ErrorKind = "misconfigured" // our credentials, our account or our mode are wrong
	Refused       ErrorKind = "refused"       // the provider will never do this
	KeyReused     ErrorKind = "key_reused"    // the key was used before, for something else
)

// PaymentError is a call to the provider that brought no intent. Err carries no secret and no payment data.
type PaymentError struct {
	Kind      ErrorKind
	RequestID string // the provider's name for the call; "" if it did not answer
	Err       error
}

// Error names the trouble, the cause and the provider's name for the call.
func (e *PaymentError) Error() string {
	if e.RequestID == "" {
		return fmt.Sprintf("%s: %v", e.Kind, e.Err)
	}
	return fmt.Sprintf("%s: %v (request %s)", e.Kind, e.Err, e.RequestID)
}

// Unwrap is the cause.
func (e *PaymentError) Unwrap() error { return e.Err }

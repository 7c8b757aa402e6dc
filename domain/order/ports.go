package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Payments is the payment provider. A decline is an Intent, not an error. Every error is
// a *PaymentError: Unavailable, Unknown and Misconfigured are possible for every call,
// each method lists the other kinds. ordertest.TestPayments tests this contract.
type Payments interface {
	// Prepare creates an unconfirmed intent for the order: no money can move yet. While
	// the provider remembers the key, the same key returns the same intent in its current
	// state, which may be canceled.
	//
	// Replayed: the key holds a stored failure. KeyReused: the key was used with other
	// parameters. Refused: the provider does not accept the order.
	Prepare(ctx context.Context, o Order, k Key) (Intent, error)

	// Confirm moves the money, with the payment method that Prepare named and no other. An
	// intent that already succeeded or was declined is not charged: it is returned in its
	// current state, also under a key that was used before.
	//
	// KeyReused: the key was used for another intent. Refused: the provider does not
	// confirm the intent, which another attempt may have confirmed.
	Confirm(ctx context.Context, id IntentID, k Key) (Intent, error)

	// Read returns the intent in its current state, never an older copy. An intent that
	// the provider does not know or does not show is Misconfigured, because the provider
	// issued the id.
	Read(ctx context.Context, id IntentID) (Intent, error)

	// Find returns the intents that were prepared for an order in the provider's scope, in
	// any state. Intents of the last hours may be missing, because the provider's search
	// lags.
	Find(ctx context.Context, id ID) ([]Intent, error)
}

// Sentinel errors of the ports.
var (
	ErrConflict       = errors.New("order id already used with different content")
	ErrClaimLost      = errors.New("claim lost to another attempt")
	ErrStale          = errors.New("concurrent update of the record")
	ErrNotFound       = errors.New("order not found")
	ErrUnknownVersion = errors.New("record written by a newer release")
	ErrCorrupt        = errors.New("corrupt record")
	ErrNoIntent       = errors.New("no intent bound: no money has moved")
)

// RecordLostError reports an intent of an order whose record, more than a day younger
// than its message, names none: a restore from backup or a deletion removed the record.
// It is reported again for every message of the order while the record's Suspect names
// the intent.
type RecordLostError struct{ Intent IntentID }

// Error names the intent.
func (e *RecordLostError) Error() string {
	return fmt.Sprintf(
		"record lost: intent %s was prepared for this order, but its record names no intent", e.Intent,
	)
}

// SettledError reports a claim on a settled order. Record has no events.
type SettledError struct{ Record Record }

// Error names the status.
func (e *SettledError) Error() string { return "order already settled: " + string(e.Record.Status) }

// InProgressError reports a claim on an order that another attempt holds.
type InProgressError struct{ Until time.Time }

// Error names the end of the lease.
func (e *InProgressError) Error() string {
	return "order in progress: leased to another attempt until " + e.Until.UTC().Format(time.RFC3339)
}

// ErrorKind is what a failed call to the provider means for the order.
type ErrorKind string

// The error kinds.
const (
	KindUnavailable   ErrorKind = "unavailable"   // the call had no effect; retry later
	KindUnknown       ErrorKind = "unknown"       // money may have moved
	KindReplayed      ErrorKind = "replayed"      // the key is spent: it replays a stored failure
	KindMisconfigured ErrorKind = "misconfigured" // wrong credentials, account or mode
	KindRefused       ErrorKind = "refused"       // the provider will never accept this call
	KindKeyReused     ErrorKind = "key_reused"    // the key was used before with other parameters
)

// PaymentError is a failed call to the provider. It contains no secret and no payment
// data.
type PaymentError struct {
	Kind      ErrorKind
	Code      string // the provider's code, such as "resource_missing"; "" if it gave none
	RequestID string // the provider's id of the call; "" if it did not answer
	Err       error
}

// Error returns kind, cause and request id.
func (e *PaymentError) Error() string {
	if e.RequestID == "" {
		return fmt.Sprintf("%s: %v", e.Kind, e.Err)
	}
	return fmt.Sprintf("%s: %v (request %s)", e.Kind, e.Err, e.RequestID)
}

// Unwrap returns the cause.
func (e *PaymentError) Unwrap() error { return e.Err }

// KindOf returns the kind of a *PaymentError, or "" of another error.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*PaymentError](err); ok {
		return e.Kind
	}
	return ""
}

// CodeOf returns the provider's code of an error, or otherwise if there is none.
func CodeOf(err error, otherwise string) string {
	if e, ok := errors.AsType[*PaymentError](err); ok && e.Code != "" {
		return e.Code
	}
	return otherwise
}

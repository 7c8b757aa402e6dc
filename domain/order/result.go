package order

import (
	"errors"
	"time"
)

// Verdict says what becomes of the message that brought an order.
type Verdict string

// The verdicts.
const (
	Done      Verdict = "done"      // what justifies forgetting the message is durable
	Redeliver Verdict = "redeliver" // try again, not before Result.NotBefore
	Park      Verdict = "park"      // no retry will help: a person must look
)

// Reason says why, in one word: it is the log's value, the metric's dimension and the row of
// docs/reference/failures.md.
type Reason string

// The reasons that the domain gives.
const (
	ReasonSettled        Reason = "settled"           // this delivery settled the order
	ReasonDuplicate      Reason = "duplicate"         // it was settled before
	ReasonInProgress     Reason = "in_progress"       // another attempt holds it
	ReasonClaimLost      Reason = "claim_lost"        // another attempt took it from us
	ReasonUnknownVersion Reason = "unknown_version"   // a newer release wrote the record
	ReasonStore          Reason = "store_unavailable" // the store did not do as asked
	ReasonCorrupt        Reason = "corrupt_record"    // the record is not one that a store wrote
	ReasonUnavailable    Reason = "provider_unavailable"
	ReasonUnknown        Reason = "provider_unknown"
	ReasonReplayed       Reason = "provider_replayed_failure"
	ReasonMisconfigured  Reason = "misconfigured"
	ReasonOutOfTime      Reason = "out_of_time"   // too little of the lease is left to confirm
	ReasonUnconfirmed    Reason = "unconfirmed"   // the intent still waits, although it was confirmed
	ReasonConflict       Reason = "conflict"      // the same id with other content
	ReasonMismatch       Reason = "mismatch"      // the intent was made for something else
	ReasonRefused        Reason = "refused"       // the provider will never do this
	ReasonKeyReused      Reason = "key_reused"    // the provider knows an order that the store does not
	ReasonRecordLost     Reason = "record_lost"   // the provider has an intent that the order's record does not name
	ReasonInvalid        Reason = "invalid_order" // the message is no order
)

// Reasons lists every reason that the domain gives.
func Reasons() []Reason {
	return []Reason{
		ReasonSettled, ReasonDuplicate, ReasonInProgress, ReasonClaimLost, ReasonUnknownVersion, ReasonStore, ReasonCorrupt,
		ReasonUnavailable, ReasonUnknown, ReasonReplayed, ReasonMisconfigured, ReasonOutOfTime, ReasonUnconfirmed,
		ReasonConflict, ReasonMismatch, ReasonRefused, ReasonKeyReused, ReasonRecordLost, ReasonInvalid,
	}
}

// Result is all that the edge may know: for its answer to the queue, one log line and the counters.
type Result struct {
	Verdict   Verdict
	Reason    Reason
	NotBefore time.Time // of a Redeliver: no earlier delivery can succeed; zero if nobody knows
	Transient bool      // of a Redeliver: the order is not to blame, so no number of deliveries is too many
	Status    Status    // of the order, as far as known
	Attempt   int       // the claim's; 0 if there was none
	Takeover  bool      // an earlier attempt had bound an intent and did not finish
	Intent    IntentID
	RequestID string // the provider's name for the call that failed
	Err       error
}

// conclude is the one table from what happened to what is done about it.
func conclude(err error) Result {
	var (
		settled  *SettledError
		progress *InProgressError
		payment  *PaymentError
		mismatch *MismatchError
		lost     *RecordLostError
	)
	switch {
	case err == nil:
		return Result{Verdict: Done, Reason: ReasonSettled}
	case errors.As(err, &settled): // no failure, so it carries no error
		return Result{Verdict: Done, Reason: ReasonDuplicate, Status: settled.Record.Status, Intent: settled.Record.Intent}
	case errors.Is(err, ErrConflict):
		return Result{Verdict: Park, Reason: ReasonConflict, Err: err}
	case errors.As(err, &mismatch):
		return Result{Verdict: Park, Reason: ReasonMismatch, Intent: mismatch.Intent, Err: err}
	case errors.As(err, &lost):
		return Result{Verdict: Park, Reason: ReasonRecordLost, Intent: lost.Intent, Err: err}
	case errors.As(err, &progress):
		return Result{Verdict: Redeliver, Reason: ReasonInProgress, Transient: true, NotBefore: progress.Until, Err: err}
	case errors.Is(err, ErrClaimLost):
		return Result{Verdict: Redeliver, Reason: ReasonClaimLost, Transient: true, Err: err}
	case errors.Is(err, ErrUnknownVersion):
		return Result{Verdict: Redeliver, Reason: ReasonUnknownVersion, Transient: true, Err: err}
	case errors.Is(err, ErrCorrupt):
		return Result{Verdict: Redeliver, Reason: ReasonCorrupt, Transient: true, Err: err}
	case errors.Is(err, errOutOfTime):
		return Result{Verdict: Redeliver, Reason: ReasonOutOfTime, Transient: true, Err: err}
	case errors.Is(err, errUnconfirmed):
		return Result{Verdict: Redeliver, Reason: ReasonUnconfirmed, Err: err}
	case errors.As(err, &payment):
		r := concludePayment(payment.Kind)
		r.RequestID, r.Err = payment.RequestID, err
		return r
	}
	return Result{Verdict: Redeliver, Reason: ReasonStore, Transient: true, Err: err}
}

func concludePayment(t ErrorKind) Result {
	switch t {
	case Unavailable:
		return Result{Verdict: Redeliver, Reason: ReasonUnavailable, Transient: true}
	case Unknown:
		return Result{Verdict: Redeliver, Reason: ReasonUnknown, Transient: true}
	case Replayed:
		return Result{Verdict: Redeliver, Reason: ReasonReplayed, Transient: true}
	case Misconfigured:
		return Result{Verdict: Redeliver, Reason: ReasonMisconfigured, Transient: true}
	case Refused:
		return Result{Verdict: Park, Reason: ReasonRefused}
	case KeyReused:
		return Result{Verdict: Park, Reason: ReasonKeyReused}
	}
	return Result{Verdict: Redeliver, Reason: ReasonUnknown, Transient: true}
}

package order

import (
	"errors"
	"time"
)

// Verdict is what to do with an order's message.
type Verdict string

// The verdicts.
const (
	Done      Verdict = "done"      // acknowledge: the outcome is durable
	Redeliver Verdict = "redeliver" // retry, not before Result.NotBefore
	Park      Verdict = "park"      // no retry helps: move it to the dead-letter queue for a person
)

// Reason is the cause of a Verdict. It is a log value, a metric dimension and a row of
// docs/reference/failures.md.
type Reason string

// The reasons of the domain.
const (
	ReasonSettled        Reason = "settled"           // this delivery settled the order
	ReasonDuplicate      Reason = "duplicate"         // the order was already settled
	ReasonInProgress     Reason = "in_progress"       // another attempt holds the order
	ReasonClaimLost      Reason = "claim_lost"        // another attempt took the order over
	ReasonUnknownVersion Reason = "unknown_version"   // a newer release wrote the record
	ReasonStore          Reason = "store_unavailable" // the store failed or did not answer
	ReasonCorrupt        Reason = "corrupt_record"    // the record is invalid
	ReasonUnavailable    Reason = "provider_unavailable"
	ReasonUnknown        Reason = "provider_unknown"
	ReasonReplayed       Reason = "provider_replayed_failure"
	ReasonMisconfigured  Reason = "misconfigured"
	ReasonOutOfTime      Reason = "out_of_time"   // too little of the lease is left to confirm
	ReasonUnconfirmed    Reason = "unconfirmed"   // the intent still waits after Confirm
	ReasonConflict       Reason = "conflict"      // the order id is used with different content
	ReasonUnknownSKU     Reason = "unknown_sku"   // the store has no such SKU
	ReasonMismatch       Reason = "mismatch"      // the intent belongs to something else
	ReasonRefused        Reason = "refused"       // the provider does not accept the order
	ReasonKeyReused      Reason = "key_reused"    // the key was used before with another order
	ReasonRecordLost     Reason = "record_lost"   // the provider has an intent that the order's record does not name
	ReasonInvalid        Reason = "invalid_order" // the message is not a valid order
)

// Reasons returns every reason of the domain.
func Reasons() []Reason {
	return []Reason{
		ReasonSettled, ReasonDuplicate, ReasonInProgress, ReasonClaimLost, ReasonUnknownVersion, ReasonStore,
		ReasonCorrupt, ReasonUnavailable, ReasonUnknown, ReasonReplayed, ReasonMisconfigured, ReasonOutOfTime,
		ReasonUnconfirmed, ReasonUnknownSKU, ReasonConflict, ReasonMismatch, ReasonRefused, ReasonKeyReused,
		ReasonRecordLost, ReasonInvalid,
	}
}

// Result is the result of one delivery: what the caller needs to answer the queue, to log
// and to count.
type Result struct {
	Verdict   Verdict
	Reason    Reason
	NotBefore time.Time // with Redeliver: no earlier delivery can succeed; zero if unknown
	Transient bool      // with Redeliver: not the order's fault, so it does not count toward parking
	Status    Status    // of the order, as far as known
	Attempt   int       // of the claim; 0 if there was none
	Takeover  bool      // an earlier attempt bound an intent and did not finish
	Intent    IntentID
	Trace     Trace  // of the order's record, as far as known
	RequestID string // the provider's id of the failed call
	Err       error
}

// ResultOf maps every error of an attempt to a result.
func ResultOf(err error) Result {
	var (
		settled  *SettledError
		progress *InProgressError
		payment  *PaymentError
		mismatch *MismatchError
		lost     *RecordLostError
	)
	r := Result{Verdict: Redeliver, Reason: ReasonStore, Transient: true, Err: err}
	switch {
	case err == nil:
		return Result{Verdict: Done, Reason: ReasonSettled}
	case errors.As(err, &settled): // not a failure, so Err stays nil
		r := settled.Record
		return Result{Verdict: Done, Reason: ReasonDuplicate, Status: r.Status, Intent: r.Intent, Trace: r.Trace}
	case errors.Is(err, ErrConflict):
		return Result{Verdict: Park, Reason: ReasonConflict, Err: err}
	case errors.As(err, &mismatch):
		return Result{Verdict: Park, Reason: ReasonMismatch, Intent: mismatch.Intent, Err: err}
	case errors.As(err, &lost):
		return Result{Verdict: Park, Reason: ReasonRecordLost, Intent: lost.Intent, Err: err}
	case errors.As(err, &progress):
		r.Reason, r.NotBefore = ReasonInProgress, progress.Until
	case errors.Is(err, ErrClaimLost):
		r.Reason = ReasonClaimLost
	case errors.Is(err, ErrUnknownVersion):
		r.Reason = ReasonUnknownVersion
	case errors.Is(err, ErrCorrupt):
		r.Reason = ReasonCorrupt
	case errors.Is(err, errOutOfTime):
		r.Reason = ReasonOutOfTime
	case errors.Is(err, errUnconfirmed):
		r.Reason, r.Transient = ReasonUnconfirmed, false
	case errors.Is(err, errUnknownSKU):
		r.Reason, r.Transient = ReasonUnknownSKU, false
	case errors.As(err, &payment):
		r = resultOfPayment(payment.Kind)
		r.RequestID, r.Err = payment.RequestID, err
	}
	return r
}

func resultOfPayment(kind ErrorKind) Result {
	r := Result{Verdict: Redeliver, Reason: ReasonUnknown, Transient: true}
	switch kind {
	case KindUnavailable:
		r.Reason = ReasonUnavailable
	case KindReplayed:
		r.Reason = ReasonReplayed
	case KindMisconfigured:
		r.Reason = ReasonMisconfigured
	case KindRefused:
		return Result{Verdict: Park, Reason: ReasonRefused}
	case KindKeyReused:
		return Result{Verdict: Park, Reason: ReasonKeyReused}
	case KindUnknown:
	}
	return r
}

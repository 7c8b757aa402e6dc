package refund

import (
	"errors"

	"orderonce/domain/order"
)

// resultOfOutcome maps a durable outcome to a result. A refused or failed refund needs no
// message any more: its event reports it, and another try needs another id.
func resultOfOutcome(o Outcome) order.Result {
	switch o.Status {
	case Unknown:
		return order.Result{Verdict: order.Park, Reason: ReasonUnknown, Err: errUnknown}
	case Refused:
		return order.Result{Verdict: order.Done, Reason: ReasonRefused}
	case Open, Pending, Succeeded, Failed:
	}
	return order.Result{Verdict: order.Done, Reason: order.ReasonSettled}
}

var errUnknown = errors.New("the refund may have been made: compare with the provider, then resolve it")

// resultOf maps every error of an attempt to a result.
func resultOf(err error) order.Result {
	var (
		notCharged *NotChargedError
		exceeds    *ExceedsError
		settled    *SettledError
		invalid    *order.InvalidError
	)
	switch {
	case errors.As(err, &settled):
		r := order.Result{Verdict: order.Done, Reason: order.ReasonDuplicate, Status: settled.Order}
		if settled.Item.Status == Unknown {
			r.Verdict, r.Reason, r.Err = order.Park, ReasonUnknown, errUnknown
		}
		return r
	case errors.As(err, &notCharged):
		r := order.Result{Verdict: order.Redeliver, Reason: ReasonNotCharged, Transient: true, Err: err}
		if r.Status = notCharged.Status; notPayable(r.Status) {
			r.Verdict, r.Transient = order.Park, false
		}
		return r
	case errors.Is(err, order.ErrNotFound):
		return order.Result{Verdict: order.Redeliver, Reason: ReasonNotCharged, Transient: true, Err: err}
	case errors.As(err, &exceeds):
		return order.Result{Verdict: order.Park, Reason: ReasonExceeds, Err: err}
	case errors.Is(err, ErrTooMany):
		return order.Result{Verdict: order.Park, Reason: ReasonTooMany, Err: err}
	case errors.As(err, &invalid):
		return order.Result{Verdict: order.Park, Reason: order.ReasonInvalid, Err: err}
	case errors.Is(err, errUnexplained):
		return order.Result{Verdict: order.Redeliver, Reason: ReasonUnexplained, Err: err}
	case errors.Is(err, errOutOfTime):
		return order.Result{Verdict: order.Redeliver, Reason: order.ReasonOutOfTime, Transient: true, Err: err}
	}
	return order.ResultOf(err)
}

// notPayable reports whether an order in s will not be charged unless a person acts.
func notPayable(s order.Status) bool {
	switch s {
	case order.Declined, order.Canceled, order.Refused, order.OutOfStock:
		return true
	case order.Open, order.Pending, order.ActionRequired, order.Paid, order.PartiallyRefunded, order.Refunded:
	}
	return false
}

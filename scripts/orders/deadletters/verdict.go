package deadletters

import (
	"errors"
	"fmt"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Action is what to do with a message. docs/guides/operate.md explains each.
type Action string

// The actions.
const (
	// Redrive: nothing is charged twice, and the message is not parked again at once.
	Redrive Action = "redrive"
	// Discard: processing the message would change nothing.
	Discard Action = "discard"
	// Fix: the message would be parked again, unless something is corrected first.
	Fix Action = "fix"
	// Look: a person has to find out more before anything is done.
	Look Action = "look"
)

// Actions returns every action.
func Actions() []Action { return []Action{Redrive, Discard, Fix, Look} }

// Money is what happened to the money that a message is about.
type Money string

// What happened to the money.
const (
	NotCharged   Money = "not charged"
	Charged      Money = "charged and settled" // whatever went back since
	ChargedOpen  Money = "charged, row still open"
	NotRefunded  Money = "not refunded"
	Refunded     Money = "refunded"
	RefundedOpen Money = "refunded, row still open"
	Unknown      Money = "unknown"
)

// Verdict is what to do with a message.
type Verdict struct {
	Action Action
	Money  Money
	Advice string // a sentence: why, what to correct first, or what to look at
}

func redrive(m Money, advice string, a ...any) Verdict {
	return Verdict{Redrive, m, fmt.Sprintf(advice, a...)}
}

func discard(m Money, advice string, a ...any) Verdict {
	return Verdict{Discard, m, fmt.Sprintf(advice, a...)}
}

func fix(m Money, advice string, a ...any) Verdict { return Verdict{Fix, m, fmt.Sprintf(advice, a...)} }

func look(m Money, advice string, a ...any) Verdict {
	return Verdict{Look, m, fmt.Sprintf(advice, a...)}
}

func decideUnreadable(err error) Verdict {
	switch {
	case errors.Is(err, order.ErrCorrupt):
		return fix(Unknown, "repair the row, then redrive: %v", err)
	case errors.Is(err, order.ErrUnknownVersion):
		return fix(Unknown, "a newer release wrote the row: finish the roll-out, "+
			"and use the newer release of this tool")
	}
	return look(Unknown, "the row could not be read: %v", err)
}

// decideStripe decides about an order of which Stripe does not say what happened.
func decideStripe(err error) Verdict {
	if _, mismatch := errors.AsType[*order.MismatchError](err); mismatch {
		return look(Unknown, "stop processing: two deployments may share a scope: %v", err)
	}
	return look(Unknown, "Stripe does not say what happened: check STRIPE_SECRET_KEY and SCOPE: %v", err)
}

// precedesRow reports whether a message may be parked for a reason before its order or
// refund is recorded. Every other reason shows that it was recorded.
func precedesRow(why order.Reason) bool {
	switch why {
	case order.ReasonStore, order.ReasonMisconfigured, order.ReasonInvalid, order.ReasonCorrupt,
		order.ReasonUnknownVersion, sqs.ReasonPanic, sqs.ReasonNotStarted, sqs.ReasonBehind,
		refund.ReasonNotCharged, refund.ReasonExceeds, refund.ReasonTooMany, "":
		return true
	case order.ReasonSettled, order.ReasonDuplicate, order.ReasonInProgress, order.ReasonClaimLost,
		order.ReasonUnavailable, order.ReasonUnknown, order.ReasonReplayed, order.ReasonOutOfTime,
		order.ReasonUnconfirmed, order.ReasonConflict, order.ReasonMismatch, order.ReasonRefused,
		order.ReasonKeyReused, order.ReasonRecordLost, order.ReasonUnknownSKU:
	}
	return false
}

// decideReason decides about an order or a refund that is not settled, and that a redrive
// would make. The reason says whether what parked it is gone.
func decideReason(why order.Reason, money Money, id order.ID) Verdict {
	switch why {
	case order.ReasonStore, order.ReasonUnavailable, order.ReasonUnknown, order.ReasonReplayed,
		order.ReasonMisconfigured, order.ReasonOutOfTime, order.ReasonInProgress, order.ReasonClaimLost,
		order.ReasonUnknownVersion, order.ReasonCorrupt, order.ReasonRecordLost,
		sqs.ReasonNotStarted, sqs.ReasonBehind,
		refund.ReasonNotCharged, refund.ReasonExceeds, refund.ReasonTooMany, refund.ReasonUnexplained:
		return redrive(money, "nothing is charged or given back twice; while the cause lasts, "+
			"the message waits in the queue")
	case order.ReasonInvalid:
		return redrive(money, "this tool reads it, and the function did not: first roll the function back "+
			"or correct it, or it is parked again at once; nothing is charged or given back twice")
	case order.ReasonRefused:
		return fix(money, "correct the cause, then redrive with --verdict=fix; or orders cancel %s, "+
			"discard this, and only then post a corrected order under another id", id)
	case order.ReasonUnknownSKU:
		return fix(money, "add the SKU with orders stock SKU --add N --new, then redrive with --verdict=fix; "+
			"or orders cancel %s, then discard this", id)
	case sqs.ReasonPanic:
		return fix(money, "the log has the stack: deploy a release that does not panic, "+
			"then redrive with --verdict=fix")
	case order.ReasonUnconfirmed:
		return look(money, "at the PaymentIntent in the Dashboard: it still waits after it was confirmed")
	case order.ReasonMismatch, order.ReasonKeyReused:
		return look(Unknown, "stop processing, and find out why Stripe and the table differ: "+
			"two deployments may share a scope")
	case order.ReasonConflict, refund.ReasonUnknown:
		return look(money, "the row that parked it is gone: compare with Stripe before you redrive")
	case "":
		return look(money, "the function did not park it: in the order queue, it waits; in the dead-letter "+
			"queue, SQS moved it after its last receive: the log of that time says whether "+
			"the function was down or this message kills it; then redrive with --verdict=look")
	case order.ReasonSettled, order.ReasonDuplicate:
	}
	return look(money, "this release parks no message for this reason: use the release that did")
}

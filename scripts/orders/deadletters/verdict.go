package deadletters

import (
	"errors"
	"fmt"
	"slices"

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

// Money is what happened to the money of a message's order or refund.
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

// Judge returns the verdict on a message. It is a pure function: a settled order or
// refund needs no message; a bound intent that has an outcome is settled by a redrive;
// everything else depends on the reason for which the message was parked.
func Judge(m Message, f Facts) Verdict {
	switch {
	case m.Invalid != nil:
		return fix(NotCharged, "correct the producer and post the order again, then discard this with --force")
	case f.RowErr != nil && !errors.Is(f.RowErr, order.ErrNotFound):
		return judgeUnreadable(f.RowErr)
	case m.Job.IsRefund():
		return judgeRefund(m, f)
	case f.RowErr != nil:
		return judgeRowless(m, f)
	}
	return judgeOrder(m, f)
}

// judgeUnreadable judges a message whose row cannot be read.
func judgeUnreadable(err error) Verdict {
	switch {
	case errors.Is(err, order.ErrCorrupt):
		return fix(Unknown, "repair the row, then redrive: %v", err)
	case errors.Is(err, order.ErrUnknownVersion):
		return fix(Unknown, "a newer release wrote the row: finish the roll-out, "+
			"and use the newer release of this tool")
	}
	return look(Unknown, "the row could not be read: %v", err)
}

// judgeOrder judges an order that has a row.
func judgeOrder(m Message, f Facts) Verdict {
	money := moneyOf(f.Row, f.Intents)
	same, known := f.Row.Fingerprint.Matches(m.Job.Order)
	switch {
	case !known:
		return judgeUnreadable(order.ErrUnknownVersion)
	case f.StripeErr != nil:
		return judgeStripe(f.StripeErr)
	case !same:
		return fix(money, "order id already used with different content, which is %s: "+
			"find the producer that reuses order ids, then discard this with --force", f.Row.Status)
	}
	switch f.Row.Status {
	case order.Paid, order.PartiallyRefunded, order.Refunded, order.Canceled, order.OutOfStock,
		order.Declined, order.Pending, order.ActionRequired:
		return judgeSettled(f.Row, money)
	case order.Open, order.Refused:
	}
	why := m.Reason
	if f.Row.Status == order.Refused { // whatever parked this message, the order is refused again
		why = order.ReasonRefused
	}
	if f.Row.Suspect != "" { // likewise
		why = order.ReasonRecordLost
	}
	if f.Row.Intent == "" {
		return judgeUnbound(why, m.Job.Order, f.Intents)
	}
	for _, bound := range f.Intents {
		if outcome, settled := order.OutcomeOf(bound); settled {
			return redrive(money, "settles the row as %s, as Stripe says; charges nothing", outcome.Status)
		}
	}
	return judgeReason(why, money, f.Row.OrderID)
}

// judgeSettled judges an order that no message changes any more.
func judgeSettled(r order.Record, money Money) Verdict {
	if money == ChargedOpen {
		return fix(money, "the row is %s, and Stripe has charged it: orders refresh %s, then discard",
			r.Status, r.OrderID)
	}
	return discard(money, "the order is %s: another delivery changes nothing", r.Status)
}

// judgeStripe judges an order of which Stripe does not say what happened.
func judgeStripe(err error) Verdict {
	if _, mismatch := errors.AsType[*order.MismatchError](err); mismatch {
		return look(Unknown, "stop processing: two deployments may share a scope: %v", err)
	}
	return look(Unknown, "Stripe does not say what happened: check STRIPE_SECRET_KEY and SCOPE: %v", err)
}

// moneyOf returns what happened to the money of an order that has a row.
func moneyOf(r order.Record, intents []order.Intent) Money {
	if r.Status.Charged() {
		return Charged
	}
	return moneyFound(intents)
}

// judgeUnbound judges an order whose row names no intent. found is what Stripe's search
// finds. A single intent that waits was prepared by an attempt that died before it bound
// the intent. Any other shows that the row is older than the money.
func judgeUnbound(why order.Reason, o order.Order, found []order.Intent) Verdict {
	switch {
	case len(found) == 0 && why == order.ReasonRecordLost:
		return look(Unknown, "Stripe's search found a PaymentIntent when the message was parked, "+
			"and finds none now: check SCOPE")
	case len(found) == 0:
		return judgeReason(why, NotCharged, o.ID())
	case len(found) > 1:
		return look(moneyFound(found), "the row names no PaymentIntent, and Stripe's search finds %d: "+
			"restore the row from the one that was charged", len(found))
	case found[0].Fingerprint != o.Fingerprint():
		return look(moneyFound(found), "stop processing: %s was made for this order id "+
			"with different content", found[0].ID)
	case found[0].State == order.NeedsConfirmation:
		return judgeReason(why, NotCharged, o.ID())
	}
	return fix(moneyFound(found), "the row is older than the money: orders restore %s %s, "+
		"then list again", o.ID(), found[0].ID)
}

// moneyFound returns what happened to the money of an order by the intents that Stripe's
// search finds.
func moneyFound(found []order.Intent) Money {
	in := func(s order.IntentState) bool {
		return slices.ContainsFunc(found, func(i order.Intent) bool { return i.State == s })
	}
	switch {
	case in(order.Succeeded):
		return ChargedOpen
	case in(order.Processing):
		return Unknown
	}
	return NotCharged
}

// judgeRowless judges an order without a row.
func judgeRowless(m Message, f Facts) Verdict {
	switch {
	case f.StripeErr != nil:
		return judgeStripe(f.StripeErr)
	case len(f.Intents) == 0 && !precedesRow(m.Reason):
		return look(Unknown, "the order had a row, which is missing: "+
			"find out who deleted it, or which backup was restored")
	}
	return judgeUnbound(m.Reason, m.Job.Order, f.Intents)
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

// judgeReason judges an order or a refund that is not settled, and that a redrive would
// make. The reason says whether what parked it is gone.
func judgeReason(why order.Reason, money Money, id order.ID) Verdict {
	switch why {
	case order.ReasonStore, order.ReasonUnavailable, order.ReasonUnknown, order.ReasonReplayed,
		order.ReasonMisconfigured, order.ReasonOutOfTime, order.ReasonInProgress, order.ReasonClaimLost,
		order.ReasonUnknownVersion, order.ReasonCorrupt, order.ReasonInvalid, order.ReasonRecordLost,
		sqs.ReasonNotStarted, sqs.ReasonBehind,
		refund.ReasonNotCharged, refund.ReasonExceeds, refund.ReasonTooMany, refund.ReasonUnexplained:
		return redrive(money, "nothing is charged or given back twice; while the cause lasts, "+
			"the message waits in the queue")
	case order.ReasonRefused:
		return fix(money, "correct the cause, then redrive with --verdict=fix; or orders cancel %s, "+
			"discard this, and only then post a corrected order under another id", id)
	case order.ReasonUnknownSKU:
		return fix(money, "add the article with orders stock SKU --add N, then redrive with --verdict=fix; "+
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
		return look(money, "SQS moved it after its last receive: the log of that time says whether "+
			"the function was down or this message kills it; then redrive with --verdict=look")
	case order.ReasonSettled, order.ReasonDuplicate:
	}
	return look(money, "this release parks no message for this reason: use the release that did")
}

package deadletters

import (
	"errors"
	"slices"

	"orderonce/domain/order"
)

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

package deadletters

import (
	"errors"
	"slices"

	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Decide returns the verdict on a message. It is a pure function: a settled order or
// refund needs no message; a bound intent that has an outcome is settled by a redrive;
// everything else depends on the reason for which the message was parked.
func Decide(m Message, f Facts) Verdict {
	switch {
	case m.Invalid != nil:
		return decideInvalid(m, f)
	case f.RowErr != nil && !errors.Is(f.RowErr, order.ErrNotFound):
		return decideUnreadable(f.RowErr)
	case m.Job.IsRefund():
		return decideRefund(m, f)
	case f.RowErr != nil:
		return decideRowless(m, f)
	}
	return decideOrder(m, f)
}

// decideInvalid decides about a body that this release cannot read. A newer one may have
// read others of its kind before it was rolled back.
func decideInvalid(m Message, f Facts) Verdict {
	money := Unknown
	switch kind := m.named.Type; {
	case kind != "" && kind != orders.Type:
	case f.RowErr == nil && f.Row.Status.Charged():
		money = Charged
	case f.RowErr == nil && f.Row.Intent == "", errors.Is(f.RowErr, order.ErrNotFound):
		money = NotCharged
	}
	if errors.Is(m.Invalid, order.ErrUnknownVersion) {
		return fix(money, "keep this if a newer release knows it: roll forward, then redrive it with that "+
			"release of this tool; if none does, correct the producer and post it again")
	}
	return fix(money, "correct the producer and post the order again, then discard this with --force")
}

func decideOrder(m Message, f Facts) Verdict {
	money := moneyFound(f.Intents)
	if f.Row.Status.Charged() {
		money = Charged
	}
	same, known := f.Row.Fingerprint.Matches(m.Job.Order)
	switch {
	case !known:
		return decideUnreadable(order.ErrUnknownVersion)
	case f.StripeErr != nil:
		return decideStripe(f.StripeErr)
	case !same:
		return fix(money, "order id already used with different content, which is %s: "+
			"find the producer that reuses order ids, then discard this with --force", f.Row.Status)
	}
	switch f.Row.Status {
	case order.Paid, order.PartiallyRefunded, order.Refunded, order.Canceled, order.OutOfStock,
		order.Declined, order.Pending, order.ActionRequired:
		return decideSettled(f.Row, money)
	case order.Open, order.Refused:
	}
	why := m.Reason
	if f.Row.Status == order.Refused { // whatever parked this message, the order is refused again
		why = order.ReasonRefused
	}
	if f.Row.Suspect != "" { // likewise
		why = order.ReasonRecordLost
	}
	waits := len(f.Intents) == 1 && f.Intents[0].State == order.NeedsConfirmation
	switch {
	case f.Row.Intent == "" && f.Row.Status == order.Refused && len(f.Intents) > 0 && !waits:
		return fix(moneyFound(f.Intents), "the row is older than the money: orders cancel %s, then discard; "+
			"give back in Stripe's Dashboard what was charged", f.Row.OrderID)
	case f.Row.Intent == "":
		return decideUnbound(why, m.Job.Order, f.Intents)
	}
	for _, bound := range f.Intents {
		if outcome, settled := order.OutcomeOf(bound); settled {
			return redrive(money, "settles the row as %s, as Stripe says; charges nothing", outcome.Status)
		}
	}
	if why == order.ReasonKeyReused {
		return redrive(money, "the row was restored since, and names its PaymentIntent")
	}
	return decideReason(why, money, f.Row.OrderID)
}

// decideSettled decides about an order that no message changes any more.
func decideSettled(r order.Record, money Money) Verdict {
	if money == ChargedOpen && r.Status == order.OutOfStock {
		return fix(money, "the row is %s, and Stripe has charged it: return the money in Stripe's Dashboard, "+
			"then discard", r.Status)
	}
	if money == ChargedOpen {
		return fix(money, "the row is %s, and Stripe has charged it: orders refresh %s, then discard",
			r.Status, r.OrderID)
	}
	return discard(money, "the order is %s: another delivery changes nothing", r.Status)
}

// decideUnbound decides about an order whose row names no intent. found is what Stripe's
// search finds. A single intent that waits was prepared by an attempt that died before it
// bound the intent. Any other shows that the row is older than the money.
func decideUnbound(why order.Reason, o order.Order, found []order.Intent) Verdict {
	switch {
	case len(found) == 0 && why == order.ReasonRecordLost:
		return look(Unknown, "Stripe's search found a PaymentIntent when the message was parked, "+
			"and finds none now: check SCOPE")
	case len(found) == 0:
		return decideReason(why, NotCharged, o.ID())
	case len(found) > 1:
		return look(moneyFound(found), "the row names no PaymentIntent, and Stripe's search finds %d: "+
			"orders restore %s, which lists them and binds the one that was charged", len(found), o.ID())
	case found[0].Fingerprint == "":
		return look(moneyFound(found), "stop processing: something else made %s for this order id", found[0].ID)
	case found[0].Fingerprint != o.Fingerprint():
		return fix(moneyFound(found), "%s was made for this order id with different content: orders restore %s, "+
			"then discard this with --force; if no row was lost, two deployments may share a scope", found[0].ID, o.ID())
	case found[0].State == order.NeedsConfirmation && why == order.ReasonKeyReused:
		return fix(NotCharged, "%s waits for this order: orders restore %s, then redrive", found[0].ID, o.ID())
	case found[0].State == order.NeedsConfirmation:
		return decideReason(why, NotCharged, o.ID())
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

func decideRowless(m Message, f Facts) Verdict {
	switch {
	case f.StripeErr != nil:
		return decideStripe(f.StripeErr)
	case len(f.Intents) == 0 && !precedesRow(m.Reason):
		return look(Unknown, "the order had a row, which is missing: "+
			"find out who deleted it, or which backup was restored")
	}
	return decideUnbound(m.Reason, m.Job.Order, f.Intents)
}

func decideRefund(m Message, f Facts) Verdict {
	want := m.Job.Refund
	item, known := f.Account.Item(want.ID())
	switch {
	case f.RowErr != nil: // order.ErrNotFound
		return look(NotRefunded, "no order has this id: its own message may be parked, or the id is wrong")
	case want.Currency() != "" && want.Currency() != f.Account.Charged.Currency:
		return fix(moneyOfItem(item, f.Made), "the refund names %s, and the order is in %s: "+
			"correct the producer and post the refund again, then discard this with --force",
			want.Currency(), f.Account.Charged.Currency)
	case known && item.Fingerprint != want.Fingerprint():
		return fix(moneyOfItem(item, nil), "refundId already used with another amount or reason: "+
			"post what is still missing under another one, then discard this with --force")
	case known:
		return decideItem(m, f, item)
	}
	return decideNewRefund(m, f.Account)
}

func decideItem(m Message, f Facts, i refund.Item) Verdict {
	money := moneyOfItem(i, f.Made)
	switch i.Status {
	case refund.Pending, refund.Succeeded:
		return discard(money, "the refund is %s: another delivery changes nothing", i.Status)
	case refund.Failed, refund.Refused:
		return discard(money, "the refund is %s: another try needs another refundId", i.Status)
	case refund.Unknown:
		if len(f.Made) > 0 {
			return fix(money, "orders refresh %s, which records what Stripe has, then discard", f.Account.OrderID)
		}
		return fix(money, "orders refund resolve %s %s, then discard", f.Account.OrderID, i.ID)
	case refund.Open:
	}
	switch {
	case f.StripeErr != nil:
		return decideStripe(f.StripeErr)
	case len(f.Made) > 0:
		return redrive(money, "settles the refund, as Stripe says; gives nothing back again")
	case !i.SentAt.IsZero():
		return fix(money, "it may have been made: redrive with --verdict=fix, which reads Stripe first; "+
			"if it is parked as refund_unknown, orders refund resolve %s %s", f.Account.OrderID, i.ID)
	}
	return decideReason(m.Reason, money, f.Account.OrderID)
}

func moneyOfItem(i refund.Item, made []refund.Refund) Money {
	switch {
	case i.Status.Counts():
		return Refunded
	case i.Status == refund.Failed, i.Status == refund.Refused, i.SentAt.IsZero():
		return NotRefunded
	case slices.ContainsFunc(made, func(r refund.Refund) bool { return r.Status.Counts() }):
		return RefundedOpen
	}
	return Unknown
}

func decideNewRefund(m Message, a refund.Account) Verdict {
	switch {
	case !precedesRow(m.Reason):
		return look(Unknown, "the row had this refund and has it no more: compare with Stripe before you redrive")
	case a.Status == order.Canceled || a.Status == order.OutOfStock:
		return discard(NotRefunded, "the order is %s: there is nothing to give back", a.Status)
	case a.Status == order.Declined:
		return fix(NotRefunded, "the order is declined, and its customer may still pay it: orders cancel %s, "+
			"then discard; or redrive with --verdict=fix once it is paid", a.OrderID)
	case a.Status == order.Refused:
		return fix(NotRefunded, "the order is refused: decide about its own message first")
	case a.Status.Charged() && len(a.Items) >= refund.MaxRefunds:
		return fix(NotRefunded, "the order has %d refunds and gets no more: give the rest back "+
			"in Stripe's Dashboard, then discard this with --force", len(a.Items))
	case a.Status.Charged() && m.Job.Refund.Amount() > a.Left():
		left := order.Money{Amount: a.Left(), Currency: a.Charged.Currency}
		return fix(NotRefunded, "only %s is left of the charge: post a refund of less "+
			"under another refundId, then discard this with --force", left)
	}
	return decideReason(m.Reason, NotRefunded, a.OrderID)
}

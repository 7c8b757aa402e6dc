package deadletters

import (
	"slices"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// judgeRefund judges a refund.
func judgeRefund(m Message, f Facts) Verdict {
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
			"post the refund under another one, then discard this with --force")
	case known:
		return judgeItem(m, f, item)
	}
	return judgeNewRefund(m, f.Account)
}

// judgeItem judges a refund that the row has.
func judgeItem(m Message, f Facts, i refund.Item) Verdict {
	money := moneyOfItem(i, f.Made)
	switch i.Status {
	case refund.Pending, refund.Succeeded:
		return discard(money, "the refund is %s: another delivery changes nothing", i.Status)
	case refund.Failed, refund.Refused:
		return discard(money, "the refund is %s: another try needs another refundId", i.Status)
	case refund.Unknown:
		return fix(money, "orders refund resolve %s %s, then discard", f.Account.OrderID, i.ID)
	case refund.Open:
	}
	switch {
	case f.StripeErr != nil:
		return judgeStripe(f.StripeErr)
	case len(f.Made) > 0:
		return redrive(money, "settles the refund, as Stripe says; gives nothing back again")
	case !i.SentAt.IsZero():
		return fix(money, "it may have been made: redrive with --verdict=fix, which reads Stripe first; "+
			"if it is parked as refund_unknown, orders refund resolve %s %s", f.Account.OrderID, i.ID)
	}
	return judgeReason(m.Reason, money, f.Account.OrderID)
}

// moneyOfItem returns what happened to the money of a refund that the row has.
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

// judgeNewRefund judges a refund that the row does not have.
func judgeNewRefund(m Message, a refund.Account) Verdict {
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
	return judgeReason(m.Reason, NotRefunded, a.OrderID)
}

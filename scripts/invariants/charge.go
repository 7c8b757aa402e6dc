package invariants

import (
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func (b *Books) chargedTwice(broken report) {
	for id, charges := range b.Charges {
		if len(charges) > 1 {
			broken("double charge: order %s was charged %d times", id, len(charges))
		}
	}
}

func (b *Books) wrongAmount(broken report) {
	for id, charges := range b.Charges {
		for _, c := range charges {
			if want := b.Orders[id].Total; c.Total != want {
				broken("amount mismatch: order %s was charged %s, its row has %s", id, c.Total, want)
			}
		}
	}
}

func (b *Books) ledgerMismatches(broken report) {
	for id, o := range b.Orders {
		charges := b.Charges[id]
		if o.Status.Charged() != (len(charges) > 0) {
			broken("ledger mismatch: order %s is %s with %d charges", id, o.Status, len(charges))
		}
		for _, c := range charges {
			if c.Intent != o.Intent {
				broken("ledger mismatch: order %s was charged through %s, its row is bound to %s",
					id, c.Intent, o.Intent)
			}
		}
		b.wrongDispute(o, broken)
	}
	for id := range b.Charges {
		if _, found := b.Orders[id]; !found {
			broken("ledger mismatch: order %s was charged and has no row", id)
		}
	}
	b.refundMismatches(broken)
}

// wrongDispute compares the dispute of a row with the newest one at Stripe. A row may
// lack one whose webhook was lost: the operator's audit finds it.
func (b *Books) wrongDispute(o Order, broken report) {
	all := b.Disputes[o.OrderID]
	if b.Disputes == nil || o.Dispute.ID == "" {
		return
	}
	var at order.Dispute
	if len(all) > 0 {
		at = all[len(all)-1]
	}
	if o.Dispute.ID != at.ID || o.Dispute.Status != at.Status {
		broken("ledger mismatch: order %s has the dispute %q %s, Stripe has %q %s",
			o.OrderID, o.Dispute.ID, o.Dispute.Status, at.ID, at.Status)
	}
}

// refundMismatches compares each refund of the table with Stripe's list, both ways.
func (b *Books) refundMismatches(broken report) {
	for id, o := range b.Orders {
		for _, i := range o.Refunds {
			made := i.Status == refund.Pending || i.Status == refund.Succeeded || i.Status == refund.Failed
			want := order.Money{Amount: i.Amount, Currency: o.Total.Currency}
			if r, found := b.refundOf(id, i); found != made || found && r.Total != want {
				broken("ledger mismatch: refund %s of order %s is %s of %s, Stripe has %s under %q",
					i.ID, id, i.Status, want, r.Total, i.Refund)
			}
		}
	}
	for id, all := range b.Refunds {
		for _, r := range all {
			if _, known := b.Orders[id].Refund(r.Of); !known && r.Of != "" && r.Counts() {
				broken("ledger mismatch: refund %s of order %s was made and is not in its row", r.Of, id)
			}
		}
	}
}

// wrongDeclines returns the orders that are declined although their intent succeeded, or
// although no bank declined it.
func (b *Books) wrongDeclines(broken report) {
	for id, o := range b.Orders {
		i := b.Intents[o.Intent]
		declined := i.Failure != "" && i.Failure != needsCustomer && i.Status != "succeeded"
		if o.Status == order.Declined && !declined {
			broken("wrong status: order %s is declined, its intent %s is %s", id, o.Intent, i.Status)
		}
	}
}

// LeftWaiting returns the orders that wait although Stripe has an outcome for them. It
// needs Orders and Intents alone.
func (b *Books) LeftWaiting() []string { return b.findings((*Books).leftWaiting) }

func (b *Books) leftWaiting(broken report) {
	for id, o := range b.Orders {
		_, waits := o.Status.RecheckAfter()
		outcome := b.Intents[o.Intent].outcome()
		if waits && outcome != "" && o.Status.Transition(outcome) == nil {
			broken("left waiting: order %s is %s, Stripe has it %s", id, o.Status, outcome)
		}
	}
}

// needsCustomer is Stripe's code of a bank that wants to authenticate the customer.
const needsCustomer = "authentication_required"

// outcome returns the status of an order to which its intent leads, or "" if the intent
// has no outcome.
func (i Intent) outcome() order.Status {
	switch i.Status {
	case "succeeded":
		return order.Paid
	case "canceled":
		return order.Canceled
	case "processing":
		return order.Pending
	case "requires_payment_method":
		switch i.Failure {
		case "":
		case needsCustomer:
			return order.ActionRequired
		default:
			return order.Declined
		}
	}
	return ""
}

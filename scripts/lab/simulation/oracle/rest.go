package oracle

import (
	"cmp"
	"slices"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// needsCustomer is Stripe's decline code of a bank that wants to authenticate the
// customer.
const needsCustomer = "authentication_required"

// AtRest checks what must hold when nothing is left to do.
func (o *Oracle) AtRest() {
	if n := o.view.Expired(); n > 0 && !o.subject.Loses {
		o.fail(EverythingEnds, o.sent[0].ID, "the queue lost a message: %d expired", n)
	}
	for i, m := range o.sent {
		x := o.of(m.ID)
		why := x.parked[i]
		o.checkWaiting(x)
		o.checkPublished(x)
		if x.status == order.Open && !x.needsPerson() {
			o.fail(EverythingEnds, m.ID, "message %d is gone (%s) and the order is open", i+1, why)
		}
		if x.claimed != nil && *x.claimed != m && why == "" {
			o.fail(ConflictParked, m.ID, "message %d has other content and was not parked", i+1)
		}
		o.checkBooks(x)
	}
}

// needsPerson reports whether a message of the order was parked for a reason that leaves
// the order open.
func (x *tracked) needsPerson() bool {
	return slices.ContainsFunc(x.parked, func(why order.Reason) bool {
		return forPeople(why) && why != "refused"
	})
}

func (o *Oracle) checkBooks(x *tracked) {
	r, _ := o.view.Row(x.id)
	stripe, charges := order.Open, len(o.charges(x.id))
	i := o.view.Stripe().Intent(string(r.Intent))
	if x.edited && i != nil && (i.OrderID() != string(x.id) || !o.Ours(i.ID)) {
		i = nil // the intent of something else must not count as this order's payment
	}
	switch {
	case i != nil:
		stripe = statusOf(i)
	case r.Status == order.Canceled && r.Intent == "":
		stripe = order.Canceled // an operator closed it before it had an intent
	}
	row := cmp.Or(r.Status, order.Open)
	if row != stripe && !unreported(row, stripe) {
		o.fail(BooksAgree, x.id, "the row says %s and Stripe says %s", row, stripe)
	}
	if (r.Status == order.Paid) != (charges == 1) {
		o.fail(BooksAgree, x.id, "the row says %s and there are %d charges", r.Status, charges)
	}
}

// unreported reports whether a row keeps its status although the intent has another one,
// because the payment failed before and the customer tries again (settle.Refresh).
func unreported(row, stripe order.Status) bool {
	return row == order.Declined && stripe != order.Paid ||
		row == order.ActionRequired && stripe == order.Pending || row == order.Refused && stripe == order.Open
}

func statusOf(i *stripetest.Intent) order.Status {
	switch i.Status {
	case stripetest.StatusSucceeded:
		return order.Paid
	case stripetest.StatusProcessing:
		return order.Pending
	case stripetest.StatusCanceled:
		return order.Canceled
	case stripetest.StatusRequiresConfirmation:
		return order.Open
	case stripetest.StatusRequiresPaymentMethod:
		switch {
		case i.LastError == nil:
			return order.Open
		case i.LastError.DeclineCode == needsCustomer:
			return order.ActionRequired
		}
		return order.Declined
	}
	return ""
}

// Reported reports which open orders have no intent, as the reconciler says at the end of
// a run.
func (o *Oracle) Reported(noIntent []order.Record) {
	for _, x := range o.orders {
		x.reported = slices.ContainsFunc(noIntent, func(r order.Record) bool { return r.OrderID == x.id })
	}
}

// checkWaiting checks an order that still waits after the reconciler has looked at it:
// its intent has no outcome, or it has no intent and the reconciler says so. A declined
// order does not wait: it gets one look.
func (o *Oracle) checkWaiting(x *tracked) {
	r, _ := o.view.Row(x.id)
	if _, waits := recheckAfter(r.Status); !waits || r.Status == order.Declined || !o.subject.Reconciles {
		return
	}
	i := o.view.Stripe().Intent(string(r.Intent))
	switch {
	case r.Intent == "" && !x.reported:
		o.fail(NoneForgotten, x.id, "the order is open without an intent, and no reconcile run reports it")
	case x.edited || i == nil:
	case statusOf(i) != r.Status && !unreported(r.Status, statusOf(i)):
		o.fail(NoneForgotten, x.id, "after the last reconcile run the row says %s and Stripe says %s",
			r.Status, statusOf(i))
	}
}

// Published reports that the bus has accepted an event. It may accept one again, but not
// the first time before an earlier one of its order.
func (o *Oracle) Published(e outbox.Event) {
	x := o.of(e.OrderID)
	r, _ := o.view.Row(e.OrderID)
	switch n := e.Event.Seq; {
	case n < 1 || n > len(r.Events) || e.Event != r.Events[n-1] || e.Total != r.Total:
		o.fail(PublishedInOrder, e.OrderID, "event %d was published, and the row has none like it", n)
	case n > x.published+1:
		o.fail(PublishedInOrder, e.OrderID, "event %d was published before event %d", n, x.published+1)
	default:
		x.published = max(x.published, n)
	}
}

func (o *Oracle) checkPublished(x *tracked) {
	r, _ := o.view.Row(x.id)
	if o.subject.Publishes && x.published < len(r.Events) {
		o.fail(PublishedInOrder, x.id, "%d of %d events were published", x.published, len(r.Events))
	}
}

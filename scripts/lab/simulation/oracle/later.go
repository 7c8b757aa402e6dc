package oracle

import (
	"slices"

	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

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

// checkPublished checks that the bus has every event of an order.
func (o *Oracle) checkPublished(x *tracked) {
	r, _ := o.view.Row(x.id)
	if o.subject.Publishes && x.published < len(r.Events) {
		o.fail(PublishedInOrder, x.id, "%d of %d events were published", x.published, len(r.Events))
	}
}

package world

import (
	"context"
	"errors"
	"fmt"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/settle"
)

type incidents struct {
	orders    []*incident // one per order, by the first message
	denial    denial
	paused    bool // the gap is over
	forgot    bool // Stripe has forgotten its keys
	edited    bool // a person has written a wrong intent into a row
	met       bool // the neighbor has used its keys
	redriven  bool // since the last disturbance
	rechecked bool // the reconciler looks at every waiting order, and nothing has happened since it began
}

type incident struct {
	id       order.ID
	changed  bool // its intent was changed at Stripe, and no operator has asked since
	restored bool // an operator has tried to bind its intent to its row again
	streamed int  // events of its row that are in the stream
}

func (n *incidents) of(id order.ID) *incident {
	for _, x := range n.orders {
		if x.id == id {
			return x
		}
	}
	return nil
}

func (n *incidents) appendState(b []byte) []byte {
	for _, is := range []bool{n.paused, n.forgot, n.redriven, n.edited, n.met, n.rechecked} {
		b = appendNumbers(b, bit(is))
	}
	b = append(appendNumbers(b, n.denial.until.UnixNano()), n.denial.of...)
	for _, x := range n.orders {
		b = appendNumbers(b, bit(x.changed)<<1|bit(x.restored))
	}
	return b
}

// redrive moves every dead letter back: it gets a new message id and no receives, its
// retention starts again, and it must be answered once more.
func (w *World) redrive(option) {
	now := w.Now
	for _, m := range must1(w.queue.Messages(now, w.queue.dead)) {
		i := numberOf(m)
		w.oracle.Redriven(i)
		if m.Attributes[sqs.AttrReason].Text == string(order.ReasonRecordLost) {
			w.restore(w.incidents.of(w.sent[i].ID))
		}
	}
	w.happens("operator", "redrives the dead letters")
	w.incidents.redriven = must1(w.queue.Counts(now, w.queue.orders)).Empty() // else there may soon be more
	w.queue.unseen += must1(w.queue.Redrive(now, w.queue.dead, w.queue.orders))
	if must1(w.queue.Counts(now, w.queue.orders)).Empty() {
		w.queue.oldest = now
	}
}

// restore binds the order's first intent to its row, as the operator's tool does, and
// then asks Stripe.
func (w *World) restore(x *incident) {
	x.restored = true
	r, known := w.services.store.Peek(x.id)
	for _, i := range w.services.stripe.Intents() {
		if !known || i.OrderID() != string(x.id) || !sameContent(i.Metadata["fingerprint"], r.Fingerprint) {
			continue
		}
		lost := order.Record{
			OrderID: x.id, Total: r.Total, Fingerprint: r.Fingerprint,
			Intent: order.IntentID(i.ID), Mode: order.TestMode,
		}
		if err := settle.Recreate(context.Background(), &w.services.store, lost, w.Now); err == nil {
			w.happens("operator", fmt.Sprintf("restores the row of %s with %s", x.id, i.ID))
			x.changed = true
		}
		return // an attempt that holds the order may settle it
	}
}

// refresh lets an operator ask Stripe about an order. After a fault, and after an error
// that another try can mend, the operator must try again.
func (w *World) refresh(x *incident) {
	w.oracle.Disturbed()
	x.changed = false
	w.start(task{
		kind: refresh, of: string(x.id), failed: func() { x.changed = true },
		run: func(k *Worker) { x.changed = k.refresh(x.id) || x.changed },
	}, "operator", "asks Stripe about "+string(x.id)+" with refresh", "")
}

// refresh asks Stripe about an order, as the operator's tool does. It reports whether the
// operator must try again.
func (k *Worker) refresh(id order.ID) (again bool) {
	_, err := settle.Refresh(context.Background(), store{k}, payments{k}, scope, id, k.Now())
	_, mismatch := errors.AsType[*order.MismatchError](err)
	return err != nil && !mismatch && !errors.Is(err, order.ErrNoIntent)
}

// cancellations returns the orders that an operator can cancel: those with a row, in any
// state. In an adversarial world several operators do it at the same time.
func (w *World) cancellations(options []option) []option {
	if w.doing(cancel) && !w.setup.Adversarial {
		return options
	}
	for i, x := range w.incidents.orders {
		if _, known := w.services.store.Peek(x.id); known {
			options = append(options, option{kind: cancel, n: i})
		}
	}
	return options
}

// cancel lets an operator cancel an order. After a fault, and after an error that
// another try can mend, somebody must ask Stripe what became of the intent: the webhook
// endpoint and the reconciler if they run, or else the operator.
func (w *World) cancel(x *incident) {
	w.disturb()
	differs := func() { w.mayDiffer(x) }
	w.start(task{
		kind: cancel, of: string(x.id), failed: differs, arrived: differs,
		run: func(k *Worker) {
			if k.cancel(x.id) {
				x.changed = true
			}
		},
	}, "operator", "cancels "+string(x.id)+" with", "")
}

// cancel cancels an order, as the operator's tool does. It reports whether the
// operator must try again.
func (k *Worker) cancel(id order.ID) (again bool) {
	c := order.Cancellation{Store: store{k}, Payments: payments{k}, Canceler: payments{k}, Scope: scope}
	r, err := c.Cancel(context.Background(), id, k.Now())
	if err != nil {
		_, mismatch := errors.AsType[*order.MismatchError](err)
		return !mismatch
	}
	k.world.oracle.CancelReturned(id, r.Status)
	return false
}

// changeIntent does what a customer, a bank or a person in the Dashboard does to an
// intent.
func (w *World) changeIntent(o option) {
	id, now, stripe := w.services.stripe.Intents()[o.n].ID, w.Now, w.services.stripe
	var err error
	who, what := "", ""
	seen := w.ledgerLength()
	switch o.kind { //nolint:exhaustive // take has the others
	case dashboard:
		who, what, err = "Dashboard", "cancels "+id, stripe.CancelInDashboard(now, id)
	case pay:
		who, what, err = "customer", "pays "+id+" another way", stripe.CustomerPays(now, id)
	case clears:
		who, what, err = "bank", "says that "+id+" is paid", stripe.Settle(now, id, true)
	case bounce:
		who, what, err = "bank", "says that "+id+" is not paid", stripe.Settle(now, id, false)
	}
	if err != nil {
		what += ", in vain: " + err.Error()
	} else if i := stripe.Intent(id); i.OrderID() != "" {
		w.mayDiffer(w.incidents.of(order.ID(i.OrderID())))
		w.oracle.ChangedOutside(order.ID(i.OrderID()))
	}
	w.happens(who, what)
	w.addCharges(seen)
}

// mayDiffer makes an operator ask about an order whose intent may have changed at Stripe
// alone, unless webhooks and the reconciler find that out.
func (w *World) mayDiffer(x *incident) {
	if told := w.setup.Webhooks && w.setup.Reconcile; !told {
		x.changed = true
	}
}

func (w *World) edit(o option) {
	x, wrong := w.incidents.orders[o.n], o.flaw
	w.incidents.edited = true
	ctx := context.Background()
	r := must1(w.services.store.Load(ctx, x.id))
	claimed := w.oracle.Claimed(x.id)
	intent := w.wrongIntent(claimed, wrong)
	edited := r
	edited.Intent, edited.UpdatedAt = order.IntentID(intent.ID), w.Now
	must1(w.services.store.Save(ctx, r, edited))
	w.oracle.Edited(x.id)
	x.changed = true // the same person asks Stripe what became of it
	w.happens("operator", fmt.Sprintf("writes %s (%s) into the row of %s by mistake", intent.ID, wrong, x.id))
}

package world

import (
	"context"
	"errors"

	"orderonce/domain/order"
)

// cancellations returns the orders that an operator can cancel: those with a row, in any
// state. In a restless world several operators do it at the same time.
func (w *World) cancellations(options []option) []option {
	if w.doing(cancel) && !w.setup.Restless {
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
	k := w.newWorker(task{
		kind: cancel, of: string(x.id), failed: differs, arrived: differs,
		run: func(k *Worker) {
			if k.cancel(x.id) {
				x.changed = true
			}
		},
	})
	k.seen.Cancels = true
	if w.Recording() {
		w.Add("operator", "cancels "+string(x.id)+" with "+k.seen.Name, "")
	}
	w.begin(k)
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

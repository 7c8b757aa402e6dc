package prove

import (
	"context"
	"fmt"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// late is something that was sent by a worker who has given up on it.
type late struct {
	what   string
	acting int
	state  trace  // tells it from others when states are compared
	happen func() // from which the worker learns nothing any more
}

func (w *World) arrive(n int) {
	l := w.late[n]
	w.late = append(w.late[:n:n], w.late[n+1:]...)
	w.acting = l.acting
	w.now = w.now.Add(callTime)
	w.happens("network", l.what)
	told := w.toldMoney()
	l.happen()
	w.noteMoney(told)
}

// redrive moves every dead letter back: new message ids, no receives, and retention starts again.
func (w *World) redrive() {
	w.happens("operator", "redrives the dead letters")
	w.redriven = must1(w.queue.Counts(w.now, orders)).Empty() // else there may soon be more
	w.unseen += must1(w.queue.Redrive(w.now, dead, orders))
	if must1(w.queue.Counts(w.now, orders)).Empty() {
		w.oldest = w.now
	}
}

// refreshing reports whether an operator is at it.
func (w *World) refreshing() bool {
	for _, k := range w.workers {
		if len(k.messages) == 0 {
			return true
		}
	}
	return false
}

func (w *World) refresh(x *watched) {
	w.oracle.disturbed()
	x.touched = false
	k := w.newWorker(nil)
	k.asks = x.id
	w.begin(k)
}

func (w *World) intent(i int) *stripetest.Intent { return w.stripe.Intent(intentName(i)) }

func intentName(i int) string { return fmt.Sprintf("pi_%06d", i+1) }

// touch is what a customer, a bank or a person in the Dashboard does to an intent.
func (w *World) touch(y way) {
	id := intentName(y.n)
	var err error
	who, what := "", ""
	told := w.toldMoney()
	switch y.does { //nolint:exhaustive // take has the others
	case cancels:
		who, what, err = "Dashboard", "cancels "+id, w.stripe.CancelInDashboard(w.now, id)
	case customer:
		who, what, err = "customer", "pays "+id+" another way", w.stripe.CustomerPays(w.now, id)
	case clears:
		who, what, err = "bank", "says that "+id+" is paid", w.stripe.Settle(w.now, id, true)
	case bounces:
		who, what, err = "bank", "says that "+id+" is not paid", w.stripe.Settle(w.now, id, false)
	}
	if err != nil {
		what += ", in vain: " + err.Error()
	} else if i := w.stripe.Intent(id); i.OrderID() != "" {
		x := w.oracle.of(order.ID(i.OrderID()))
		x.touched, x.outside = true, true
	}
	w.happens(who, what)
	w.noteMoney(told)
}

// mistake writes another order's intent into a row that has none.
func (w *World) mistake(id order.ID) {
	w.mistaken = true
	x, r := w.oracle.of(id), must1(w.store.Load(context.Background(), id))
	wrong := order.IntentID(w.foreign(id).ID)
	claim := order.Claim{Order: w.lab.order(x.claimed.body()), Lease: order.Lease{Owner: r.Owner}}
	must(w.store.Bind(context.Background(), claim, order.Intent{ID: wrong}, w.now))
	x.mistaken = true
	w.happens("operator", fmt.Sprintf("writes %s into the row of %s by mistake", wrong, id))
}

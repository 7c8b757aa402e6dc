package simulation

import (
	"context"
	"fmt"

	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// late is something that was sent by a worker who has given up on it.
type late struct {
	what   string
	acting int
	deed   deed
	state  trace  // tells it from others when states are compared
	happen func() // from which the worker learns nothing any more
}

func (w *World) arrive(n int) {
	l := w.late[n]
	w.late = append(w.late[:n:n], w.late[n+1:]...)
	w.acting, w.deed = l.acting, l.deed
	w.now = w.now.Add(callTime)
	w.happens("network", l.what)
	told := w.toldMoney()
	l.happen()
	w.noteMoney(told)
}

// redrive moves every dead letter back: new message ids, no receives, and retention
// starts again. Each is to be answered once more.
func (w *World) redrive() {
	for _, m := range must1(w.queue.Messages(w.now, w.deadQueue)) {
		i := numberOf(m)
		w.oracle.of(w.Messages[i].ID).answered[i] = false
		if m.Attributes[sqs.AttrReason].Text == string(order.ReasonRecordLost) {
			w.restore(w.oracle.of(w.Messages[i].ID))
		}
	}
	w.happens("operator", "redrives the dead letters")
	w.redriven = must1(w.queue.Counts(w.now, w.ordersQueue)).Empty() // else there may soon be more
	w.unseen += must1(w.queue.Redrive(w.now, w.deadQueue, w.ordersQueue))
	if must1(w.queue.Counts(w.now, w.ordersQueue)).Empty() {
		w.oldest = w.now
	}
}

// restore binds the order's first intent to its row, as the operator's tool does, and
// then asks Stripe.
func (w *World) restore(x *watched) {
	x.restored = true
	r, known := w.row(x.id)
	for _, i := range w.stripe.Intents() {
		prepared := order.Record{Fingerprint: order.Fingerprint(i.Metadata["fingerprint"])}
		if !known || i.OrderID() != string(x.id) || content(prepared) != content(r) {
			continue
		}
		lost := order.Record{
			OrderID: x.id, Total: r.Total, Fingerprint: r.Fingerprint, Intent: order.IntentID(i.ID),
			Mode: order.TestMode,
		}
		if err := w.store.Recreate(context.Background(), lost, w.now); err == nil {
			w.happens("operator", fmt.Sprintf("restores the row of %s with %s", x.id, i.ID))
			x.touched = true
		}
		return // an attempt that holds the order may settle it
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

// mistake writes an intent into a row without one that was made for something else.
func (w *World) mistake(x *watched, kind stray) {
	w.mistaken = true
	r := must1(w.store.Load(context.Background(), x.id))
	wrong := w.straying(x, kind)
	claim := order.Claim{Order: w.lab.order(x.claimed.body()), Lease: order.Lease{Owner: r.Owner}}
	must(w.store.Bind(context.Background(), claim, order.Intent{ID: order.IntentID(wrong.ID)}, w.now))
	x.mistaken, x.touched = true, true // who writes it also asks Stripe what became of it
	w.happens("operator", fmt.Sprintf("writes %s (%s) into the row of %s by mistake", wrong.ID, kind, x.id))
}

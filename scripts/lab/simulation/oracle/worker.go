package oracle

import (
	"cmp"
	"errors"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// knowledge is what a worker knows from its responses. Its next call must follow from it.
type knowledge struct {
	order   order.ID       // of its last claim
	until   time.Time      // the end of its lease
	last    ordertest.Call // its last call
	stale   bool           // its last call found another row than it knew
	tried   time.Time      // of the first of its last calls that did so
	asked   ordertest.Call // its last call to Stripe, and what that returned:
	failed  order.ErrorKind
	intent  string
	status  order.Status // what the intent meant at that moment
	failure string       // Stripe's code at that moment
	wrong   bool         // the response was about something else
	unsaved bool         // its last Settle or Postpone failed, or its answer was lost
	noted   order.Reason // the reason with which it released its claim
}

// canceledByOperator is the failure of an order that an operator canceled before it had
// an intent (docs/reference/row.md).
const canceledByOperator = "canceled_by_operator"

// Misled reports whether Stripe's latest response to a worker is about something else.
func (k *Worker) Misled(wrong bool) { k.known.wrong = wrong }

// Calls reports that a worker is about to make a call, at a time of its own clock. The
// call must follow from what the worker knows.
func (o *Oracle) Calls(k *Worker, c Call, at time.Time) {
	if !c.ToQueue() {
		k.calls++
	}
	known := &k.known
	if !known.stale {
		known.tried = at
	}
	switch c.Name {
	case ordertest.Begin:
		*known = knowledge{order: order.ID(c.Subject), stale: known.stale, tried: known.tried}
	case ordertest.Confirm:
		if at.Add(ConfirmTime).After(known.until) {
			o.note(SettlesSoon, known.order, "a confirmation begins with too little of the lease left")
		}
		o.checkIntent(known, c.Subject)
	case ordertest.Bind, ordertest.Cancel:
		o.checkIntent(known, c.Subject)
	case ordertest.Finish, Settle:
		o.checkOutcome(known, c.Detail)
	case ordertest.Release:
		o.checkRelease(known, c.Detail)
	case ordertest.Prepare, ordertest.Read, ordertest.Find, Reply, Park, Return, ordertest.Load, Due,
		ordertest.Postpone, Answer, Put, Checkpoint:
	// no worker makes one of these
	case ordertest.ListDisputes, ordertest.RecordDispute, ordertest.Recreate, ordertest.NoteParked:
	}
	known.last = c.Name
}

// checkIntent checks that an intent may be used: Stripe's last response said that it is
// the order's, and it is.
func (o *Oracle) checkIntent(known *knowledge, id string) {
	i := o.view.Stripe().Intent(id)
	made := i != nil && o.Ours(id) && i.OrderID() == string(known.order)
	if known.wrong || !made {
		o.note(ChargedAmount, known.order,
			"intent "+id+" is used, and Stripe says that it was made for something else")
	}
}

func (o *Oracle) checkOutcome(known *knowledge, status string) {
	if status == "refused" {
		if !known.refused() {
			o.note(BooksAgree, known.order, "the order is refused without asking Stripe for the state of its intent")
		}
		return
	}
	if known.asked != "" {
		o.checkIntent(known, known.intent)
	}
	if known.failed != "" || known.status != order.Status(status) {
		o.note(BooksAgree, known.order, "the row is to say "+status+", and Stripe did not")
	}
}

func (o *Oracle) checkRelease(known *knowledge, why string) {
	follows := known.failed == "" || known.last != known.asked
	if !follows && order.Reason(why) != reasonFor(known.failed, known.asked) {
		o.note(EverythingEnds, known.order,
			"the row is to say "+why+", and Stripe's response was: "+string(known.failed))
	}
	if why == "refused" {
		o.note(EverythingEnds, known.order, "the order is refused, and its row stays open")
	}
}

// recheckFailed reports whether a look at the order has failed, and is to be repeated
// soon.
func (n *knowledge) recheckFailed() bool { return n.failed != "" || n.wrong || n.unsaved }

func (n *knowledge) refused() bool {
	return n.asked == ordertest.Prepare && n.failed == order.KindRefused ||
		n.failed == "" && n.status == order.Open
}

// reasonFor returns the reason for an error of Stripe
// (docs/reference/failures.md).
func reasonFor(k order.ErrorKind, c ordertest.Call) order.Reason {
	if c == ordertest.Read && (k == order.KindRefused || k == order.KindKeyReused) {
		return "misconfigured" // the intent is bound, so it is not the order that is refused
	}
	return map[order.ErrorKind]order.Reason{
		order.KindUnavailable: "provider_unavailable", order.KindUnknown: "provider_unknown",
		order.KindReplayed: "provider_replayed_failure", order.KindMisconfigured: "misconfigured",
		order.KindRefused: "refused", order.KindKeyReused: "key_reused",
	}[k]
}

// Returned reports what a call returned: Stripe's intent, if there is one, and the error.
func (o *Oracle) Returned(k *Worker, c Call, intent string, err error) {
	known := &k.known
	known.stale = errors.Is(err, order.ErrStale)
	switch {
	case c.ToStripe():
		*known = knowledge{
			order: known.order, until: known.until, last: c.Name, asked: c.Name,
			failed: kindOf(err), intent: intent, wrong: known.wrong,
		}
		if i := o.view.Stripe().Intent(intent); i != nil {
			known.status, known.failure = statusOf(i), codeOf(i)
		}
	case c.Name == ordertest.Begin && err == nil:
		r, _ := o.view.Row(order.ID(c.Subject))
		known.until = r.Until
	case c.Name == ordertest.Load:
		*known = knowledge{order: order.ID(c.Subject), last: c.Name}
		if k.Cancels && intent == "" && err == nil { // there is nothing to ask Stripe about
			known.status, known.failure = order.Canceled, canceledByOperator
		}
	case c.Name == Settle, c.Name == ordertest.Postpone:
		known.unsaved = err != nil
	case c.Name == ordertest.Release && err == nil,
		c.Name == ordertest.Finish && err == nil && c.Detail == "refused":
		known.noted = order.Reason(c.Detail)
	}
}

func kindOf(err error) order.ErrorKind {
	if p, ok := errors.AsType[*order.PaymentError](err); ok {
		return p.Kind
	}
	return ""
}

func codeOf(i *stripetest.Intent) string {
	if i.LastError == nil {
		return ""
	}
	return cmp.Or(i.LastError.DeclineCode, i.LastError.Code)
}

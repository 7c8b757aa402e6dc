package world

import (
	"slices"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/oracle"
)

// kind is what can happen next, as figures and needs name it.
type kind string

const (
	call       kind = "step"                      // a worker makes its next call, perhaps with a fault
	deliver    kind = "delivery"                  // the queue delivers messages
	turn       kind = "turn"                      // another worker continues, and thaws if it is frozen
	arrive     kind = "late arrival"              // a late request arrives, or ends
	redrive    kind = "redrive"                   // an operator moves every dead letter back
	refresh    kind = "refresh"                   // an operator asks Stripe about an order
	cancel     kind = "operator cancels"          // an operator cancels an order
	dashboard  kind = "cancel in the Dashboard"   // a person cancels an intent
	pay        kind = "customer pays"             // the customer pays an intent another way
	clears     kind = "bank clears"               // the bank reports that a pending payment succeeded
	bounce     kind = "bank bounces"              // the bank reports that it failed
	forget     kind = "keys forgotten"            // Stripe forgets its idempotency keys
	showTwice  kind = "shown twice"               // the queue shows a message that is in flight
	pause      kind = "outage"                    // for a while no worker runs
	edit       kind = "row edited by mistake"     // a person writes the intent of something else into a row
	deny       kind = "action denied"             // a permission that the function needs is denied for a while
	allow      kind = "action allowed again"      // the permission is back
	event      kind = "webhook"                   // Stripe sends an event
	eventLate  kind = "webhook late"              // Stripe sends an event later
	eventLost  kind = "webhook never sent"        // Stripe does not send an event, or not again
	eventAgain kind = "webhook sent twice"        // Stripe sends an event that it has sent
	publish    kind = "publication"               // the table's stream delivers events
	reconcile  kind = "reconcile run"             // the schedule starts the reconciler
	neighbor   kind = "neighbor with the same id" // another deployment uses its keys for the same order id
)

type option struct {
	kind   kind
	worker *Worker
	fault  Fault
	at     time.Time
	n      int // of a message, an order, an intent, a clock, a pause, a permission or an event
	late   int // how late an event is
	flaw   flaw
	old    bool
}

// deviation returns the kind of trouble that an option is, if it is not the default one.
func (o option) deviation() string {
	switch {
	case o.fault != None:
		return string(o.fault)
	case o.kind == deliver && o.old:
		return "older release"
	case o.kind == deliver && o.n > 0:
		return "wrong clock"
	case o.kind == deliver:
		return "overlapping delivery"
	case o.kind == event:
		return "overlapping webhook"
	case o.kind == reconcile:
		return "early reconcile run"
	case o.kind == publish:
		return "early publication"
	case o.kind == deny:
		return string(o.kind) + ": " + string(permissions()[o.n])
	case o.kind == edit:
		return string(o.kind) + ": an intent " + string(o.flaw)
	}
	return string(o.kind)
}

// pauses are the times for which no worker runs in an adversarial world. An outage is
// shorter than the queue's retention.
func pauses() []time.Duration {
	return []time.Duration{
		30 * time.Second, 10 * time.Minute, time.Hour, 14 * time.Hour, 25 * time.Hour, 5 * oracle.Day,
	}
}

// options returns what can happen next, the default option first: the current worker
// continues, else a late request arrives, else the queue delivers, else a frozen worker
// thaws, else operators handle what is left. Without an option the world is at rest.
func (w *World) options() []option {
	at, waiting := w.nextDelivery()
	first, more := w.defaultOption(at, waiting)
	if !more {
		return nil
	}
	options := append(w.lab.options[:0], first)
	current := w.current()
	if current != nil {
		options = w.faults(options, current)
	}
	if waiting && !at.After(w.Now) && len(w.Actors) < w.setup.workers() &&
		(current != nil || len(w.late) > 0) {
		options = append(options, option{kind: deliver, at: w.Now})
	}
	if waiting && current == nil {
		options = w.deviantDeliveries(options, at)
	}
	for _, a := range w.Actors {
		if k := workerOf(a); k != current && first.worker != k {
			options = append(options, option{kind: turn, worker: k})
		}
	}
	for i := range w.late {
		if first.kind != arrive || i > 0 {
			options = append(options, option{kind: arrive, n: i})
		}
	}
	if w.setup.People {
		options = w.people(options)
	}
	if w.setup.Adversarial {
		options = w.unrest(options, at, waiting)
	}
	options = w.outsiders(options)
	if w.setup.Webhooks {
		options = w.events(options, first)
	}
	if w.setup.Reconcile {
		options = w.rechecks(options, first)
	}
	if w.setup.Publish {
		options = w.publications(options, first)
	}
	w.lab.options = options
	return options
}

func (w *World) outsiders(options []option) []option {
	if w.setup.Cancels {
		options = w.cancellations(options)
	}
	if w.setup.Mistake && !w.incidents.edited {
		options = w.edits(options)
	}
	if w.setup.Denials {
		options = w.denials(options)
	}
	if w.setup.Neighbor && !w.incidents.met {
		options = append(options, option{kind: neighbor, n: w.setup.Variety % 2})
	}
	return options
}

func (w *World) defaultOption(at time.Time, waiting bool) (first option, more bool) {
	n, eventAt, events := w.nextEvent()
	switch {
	case w.Current != nil:
		return option{kind: call, worker: w.current()}, true
	case len(w.late) > 0:
		return option{kind: arrive}, true
	case events && (!waiting || !eventAt.After(at)):
		return option{kind: event, n: n, at: eventAt}, true
	case waiting:
		return option{kind: deliver, at: at}, true
	case len(w.Actors) > 0:
		return option{kind: turn, worker: workerOf(w.Actors[0])}, true
	case w.denying():
		return option{kind: allow}, true
	case !w.incidents.redriven && w.deadLetters():
		return option{kind: redrive}, true
	}
	for i, x := range w.incidents.orders {
		if x.changed && !w.waitsForReconcile(x) {
			return option{kind: refresh, n: i}, true
		}
	}
	if _, last, waits := w.nextRecheck(); w.setup.Reconcile && waits && !w.incidents.rechecked {
		return option{kind: reconcile, at: last}, true
	}
	if w.unpublished() {
		return option{kind: publish}, true
	}
	return option{}, false
}

func (w *World) deadLetters() bool {
	return must1(w.queue.Counts(w.Now, w.queue.dead)).Visible > 0
}

func (w *World) faults(options []option, k *Worker) []option {
	spec := w.lab.specs[k.next.Name]
	for _, f := range spec.faults {
		options = append(options, option{kind: call, worker: k, fault: f})
	}
	if w.setup.Rare {
		for _, f := range spec.rare {
			options = append(options, option{kind: call, worker: k, fault: f})
		}
	}
	if w.setup.Batch > 0 && k.mayPanic() {
		options = append(options, option{kind: call, worker: k, fault: Panics})
	}
	return options
}

func (w *World) deviantDeliveries(options []option, at time.Time) []option {
	for i := range w.setup.Clocks {
		options = append(options, option{kind: deliver, at: at, n: i + 1})
	}
	if w.setup.Releases {
		options = append(options, option{kind: deliver, at: at, old: true})
	}
	return options
}

func (w *World) people(options []option) []option {
	if !w.incidents.forgot {
		options = append(options, option{kind: forget})
	}
	for i, x := range w.incidents.orders {
		if r, known := w.services.store.Peek(x.id); known && r.Intent != "" && !w.doing(refresh) {
			options = append(options, option{kind: refresh, n: i})
		}
	}
	for i, intent := range w.services.stripe.Intents() {
		if !w.oracle.Ours(intent.ID) {
			continue
		}
		switch intent.Status {
		case stripetest.StatusRequiresConfirmation:
			options = append(options, option{kind: dashboard, n: i})
		case stripetest.StatusRequiresPaymentMethod:
			options = append(options, option{kind: dashboard, n: i}, option{kind: pay, n: i})
		case stripetest.StatusProcessing:
			options = append(options, option{kind: clears, n: i}, option{kind: bounce, n: i})
		case stripetest.StatusSucceeded, stripetest.StatusCanceled:
		}
	}
	return options
}

func (w *World) unrest(options []option, at time.Time, waiting bool) []option {
	current := w.current()
	if current != nil && len(current.messages) > 0 {
		options = append(options, option{kind: showTwice, worker: current})
	}
	for n, d := range pauses() {
		if current == nil && waiting && w.mayPause(at, d) {
			options = append(options, option{kind: pause, at: at, n: n})
		}
	}
	if current == nil && w.deadLetters() {
		options = append(options, option{kind: redrive})
	}
	return options
}

// mayPause reports whether every message outlives a pause with a day to spare.
func (w *World) mayPause(at time.Time, d time.Duration) bool {
	return at.Add(d).Sub(w.queue.oldest) < oracle.Retention-oracle.LastDay
}

func (w *World) edits(options []option) []option {
	for i, x := range w.incidents.orders {
		r, known := w.services.store.Peek(x.id)
		if !known || r.Status != order.Open || r.Intent != "" {
			continue
		}
		for _, f := range flaws() {
			if f != otherOrder || w.intentOfAnother(x.id) != nil {
				options = append(options, option{kind: edit, n: i, flaw: f})
			}
		}
	}
	return options
}

// nextDelivery returns when the queue can next deliver something, and whether it ever
// can.
func (w *World) nextDelivery() (at time.Time, waiting bool) {
	counts := must1(w.queue.Counts(w.Now, w.queue.orders))
	if counts.Empty() {
		return time.Time{}, false
	}
	at = w.Now
	if !w.deliverable(counts) {
		at, waiting = w.queue.Next(w.Now)
		if !waiting {
			return time.Time{}, false
		}
	}
	gap := w.setup.Gap
	if over := epoch().Add(gap); w.queue.unseen == 0 && !w.incidents.paused && gap > oracle.Visibility &&
		at.Before(over) {
		at = over
	}
	return at, true
}

// deliverable reports whether the queue can deliver something now. A visible message of a
// FIFO queue waits while one of its group is in flight.
func (w *World) deliverable(counts sqstest.Counts) bool {
	if !w.setup.FIFO || counts.Visible == 0 {
		return counts.Visible > 0
	}
	messages := must1(w.queue.Messages(w.Now, w.queue.orders))
	return slices.ContainsFunc(messages, func(m sqstest.Message) bool {
		return m.State == sqstest.Visible && !slices.ContainsFunc(messages, func(o sqstest.Message) bool {
			return o.Group == m.Group && o.State == sqstest.InFlight
		})
	})
}

package world

import (
	"strings"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/stage"
)

// choice is an option that a test takes once it is possible.
type choice struct {
	kind  kind
	fault Fault
	at    ordertest.Call // of a fault: the call; of a kind: the call before which the current worker waits, "" for any
}

func (c choice) fits(w *World, o option) bool {
	if c.fault != None {
		return o.fault == c.fault && o.worker.next.Name == c.at
	}
	current := w.workers.current
	return o.kind == c.kind && (c.at == "" || current != nil && current.next.Name == c.at)
}

// runTaking runs a world in which each choice is taken as soon as it is possible, after
// the previous ones.
func runTaking(c Case, all ...choice) (*World, *stage.Violation) {
	return runChoosing(c, len(all), func(w *World, o option) bool {
		if len(all) == 0 || !all[0].fits(w, o) {
			return false
		}
		all = all[1:]
		return true
	})
}

// lines returns what a history says, by the line.
func lines(w *World) (all []string) {
	for _, l := range w.History() {
		all = append(all, l.Who+" "+l.What+" -> "+l.Answer)
	}
	return all
}

// happensInOrder reports whether a history has a line for each part, in this order.
func happensInOrder(w *World, parts ...string) bool {
	for _, line := range lines(w) {
		if len(parts) > 0 && strings.Contains(line, parts[0]) {
			parts = parts[1:]
		}
	}
	return len(parts) == 0
}

// later returns a case with everyone who acts after the worker.
func later(method string) Case {
	c := one(method)
	c.Webhooks, c.Reconcile, c.Publish, c.People = true, true, true, true
	return c
}

func TestWhatHappensAfterTheCharge(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		setup   Case
		choices []choice
		status  order.Status
		history []string
	}{
		"a worker thaws after a webhook has settled its order": {
			later(Visa), []choice{{fault: Freezes, at: ordertest.Finish}, {kind: eventLate}}, order.Paid, []string{
				"A finish ORD-1 as paid -> not yet", "Stripe sends evt_000001", "B settle ORD-1 as paid -> ok",
				"A thaws", "A finish ORD-1 as paid -> ok",
			},
		},
		"an event is sent again after a 503": {
			later(TakesDays), []choice{{kind: clears}, {fault: NeverArrives, at: oracle.Load}}, order.Paid, []string{
				"answers 503 (unavailable)", "Stripe sends evt_000001, payment_intent.processing of pi_000001 to webhook D -> again",
				"answers 200 (agrees)",
			},
		},
		"an event is sent again after its worker died": {
			later(TakesDays), []choice{{kind: clears}, {fault: Dies, at: oracle.Settle}}, order.Paid, []string{
				"settle ORD-1 as paid -> done, and the worker dies", "-> again", "answers 200 (agrees)",
			},
		},
		"an event overtakes the worker's own response": {
			later(Visa), []choice{{kind: event, at: ordertest.Finish}}, order.Paid, []string{
				"A confirm pi_000001", "answers 200 (leased)", "A finish ORD-1 as paid -> ok",
			},
		},
		"an event is sent twice": {
			later(Visa), []choice{{kind: eventAgain}}, order.Paid, []string{"-> again", "answers 200 (agrees)"},
		},
		"an order whose event is lost is settled by a reconcile run": {
			later(TakesDays),
			[]choice{{kind: clears, at: oracle.Reply}, {kind: eventLost}, {kind: eventLost}},
			order.Paid,
			[]string{"Stripe loses evt_000002", "schedule starts", "settle ORD-1 as paid -> ok"},
		},
		"a reconcile run that is killed is continued by the next one": {
			later(TakesDays), []choice{{fault: Dies, at: oracle.Postpone}}, order.Pending, []string{
				"postpone ORD-1 by 1h0m0.3s -> done, and the worker dies", "schedule starts", "postpone ORD-1",
			},
		},
		"a refused event is published again": {
			later(Visa), []choice{{fault: RefusesEntry, at: oracle.Put}}, order.Paid, []string{
				"-> done, but one event is refused", "answers 0 of 1 published", "put event 1", "answers all published",
			},
		},
		"events are published again after the publisher died": {
			later(Visa),
			[]choice{{fault: Dies, at: oracle.Put}},
			order.Paid,
			[]string{"-> done, and the worker dies", "put event 1", "answers all published"},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w, broken := runTaking(tt.setup, tt.choices...)
			if s := w.status(); broken != nil || s != tt.status || !happensInOrder(w, tt.history...) {
				t.Errorf("status %s, broken: %v, want %s and %q in\n%s",
					s, broken, tt.status, tt.history, strings.Join(lines(w), "\n"))
			}
		})
	}
}

// The worker read "declined" before the customer paid, and the event of the payment meets
// its lease. No webhook comes again: the reconciler's one look at a declined order shows
// the payment.
func TestAPaymentDuringTheLeaseOfADecliningWorkerIsFoundByReconcile(t *testing.T) {
	t.Parallel()
	w, broken := runTaking(
		later(Declined), choice{kind: pay, at: ordertest.Finish}, choice{kind: event}, choice{kind: event},
	)
	if s := w.status(); broken != nil || s != order.Paid || !happensInOrder(w,
		"customer pays", "answers 200 (leased)", "A finish ORD-1 as declined", "schedule starts", "settle ORD-1 as paid") {
		t.Errorf("status %s, broken: %v\n%s", s, broken, strings.Join(lines(w), "\n"))
	}
}

package world

import (
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
)

func TestAnOperatorCancelsWhileAWorkerCharges(t *testing.T) {
	t.Parallel()
	alone := func(method string) Case {
		c := one(method)
		c.Cancels = true
		return c
	}
	asked := alone(Declined)
	asked.People = true
	told := alone(Declined)
	told.Webhooks, told.Reconcile = true, true
	beforeConfirm := choice{kind: cancel, at: ordertest.Confirm}
	for claim, tt := range map[string]struct {
		setup   Case
		choices []choice
		status  order.Status
		history []string
	}{
		"an intent that is canceled before its confirmation is not charged": {
			alone(Visa), []choice{beforeConfirm}, order.Canceled, []string{
				"operator cancels ORD-1 with B", "B cancel pi_000001 -> pi_000001 canceled",
				"B settle ORD-1 as canceled -> ok", "A confirm pi_000001 -> pi_000001 canceled",
			},
		},
		"an order that is canceled before its intent is bound cannot be bound": {
			alone(Visa), []choice{{kind: cancel, at: ordertest.Bind}}, order.Canceled, []string{
				"B load ORD-1 -> open, no intent bound", "B settle ORD-1 as canceled -> ok", `A bind pi_000001 -> bind order "ORD-1": claim lost`,
			},
		},
		"an operator who thaws after the charge finds the order paid": {
			alone(Visa), []choice{beforeConfirm, {fault: Freezes, at: ordertest.Cancel}}, order.Paid, []string{
				"A finish ORD-1 as paid -> ok", "B thaws", "B cancel pi_000001 -> pi_000001 succeeded", "B load ORD-1 -> pi_000001 paid",
			},
		},
		"a refresh follows a cancel that arrives late": {
			alone(Declined), []choice{beforeConfirm, {fault: ArrivesLate, at: ordertest.Cancel}}, order.Canceled, []string{
				"A finish ORD-1 as declined -> ok", "network what B sent to Stripe arrives: cancel pi_000001",
				"operator asks Stripe about ORD-1", "settle ORD-1 as canceled -> ok",
			},
		},
		"a refresh follows a cancel that arrives after the last one": {
			asked, []choice{
				{kind: cancel, at: oracle.Reply},
				{fault: ArrivesLate, at: ordertest.Cancel},
				{kind: refresh, at: oracle.Reply},
			}, order.Canceled, []string{
				"asks Stripe about ORD-1 with refresh C", "C read pi_000001 -> pi_000001 needs_method",
				"network what B sent to Stripe arrives: cancel pi_000001", "D settle ORD-1 as canceled -> ok",
			},
		},
		"a refresh follows an operator who dies": {
			alone(Declined),
			[]choice{{kind: cancel, at: oracle.Reply}, {fault: Dies, at: ordertest.Cancel}},
			order.Canceled,
			[]string{"B cancel pi_000001 -> done, and the worker dies", "C settle ORD-1 as canceled -> ok"},
		},
		"a webhook settles the order of an operator who dies": {
			told, []choice{beforeConfirm, {fault: Dies, at: ordertest.Cancel}}, order.Canceled, []string{
				"B cancel pi_000001 -> done, and the worker dies", "payment_intent.canceled of pi_000001",
			},
		},
		"two operators cancel at the same time": {
			restless(alone(Visa)), []choice{beforeConfirm, {kind: cancel, at: ordertest.Read}}, order.Canceled, []string{
				"operator cancels ORD-1 with B", "operator cancels ORD-1 with C",
			},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w, broken := runTaking(tt.setup, tt.choices...)
			if broken != nil || w.status() != tt.status || !happensInOrder(w, tt.history...) {
				t.Errorf("got %s, broken: %v\n%s", w.status(), broken, lines(w))
			}
		})
	}
}

func restless(c Case) Case {
	c.Restless = true
	return c
}

func TestAWorldWithoutRowsHasNothingToCancel(t *testing.T) {
	t.Parallel()
	c := one(Visa)
	c.Cancels = true
	offered := false
	w, broken := runChoosing(c, 1, func(w *World, o option) bool {
		_, known := w.services.store.Peek("ORD-1")
		offered = offered || o.kind == cancel && !known
		return o.kind == call && o.fault == NeverArrives && o.worker.next.Name == ordertest.Begin
	})
	if broken != nil || offered || w.status() != order.Paid {
		t.Errorf("got %s, an operator may cancel: %t, broken: %v", w.status(), offered, broken)
	}
}

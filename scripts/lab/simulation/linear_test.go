package simulation_test

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"github.com/anishathalye/porcupine"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/world"
)

// register is the part of an order's row that callers observe, independent of
// ordertest.Memory.
type register struct {
	owner, intent string
	status        order.Status
	attempt       int
}

// next returns the row after a call, and whether the row allows the response. A lost
// response may have been any.
func (r register) next(op world.StoreCall) (after register, ok bool) {
	may, after := false, r
	switch op.Call { //nolint:exhaustive // the others are Stripe's
	case ordertest.Begin:
		may = r.status == "" || r.status == order.Open || r.status == order.Refused
		after.owner, after.status, after.attempt = op.Owner, order.Open, r.attempt+1
		if op.Refused {
			return r, r.attempt > 0 // only an existing row can refuse
		}
		ok = may && op.Attempt == after.attempt && op.Intent == r.intent
	case ordertest.Bind:
		may = r.owner == op.Owner && (r.intent == "" || r.intent == op.Intent)
		after.intent, ok = op.Intent, may != op.Refused
	case ordertest.Finish:
		if r.status == op.Status && r.intent == op.Intent {
			return r, op.Lost || !op.Refused // recorded before
		}
		may = r.owner == op.Owner && r.status == order.Open && r.intent == op.Intent
		after.owner, after.status, ok = "", op.Status, may != op.Refused
	case ordertest.Release:
		may = r.owner == op.Owner
		after.owner, ok = "", may != op.Refused
	}
	if !may {
		after = r
	}
	return after, ok || op.Lost
}

// model is one register per order. A call whose response was lost may or may not have
// happened.
func model() porcupine.Model {
	one := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byOrder := map[order.ID][]porcupine.Operation{}
			for _, op := range history {
				id := op.Input.(world.StoreCall).Order
				byOrder[id] = append(byOrder[id], op)
			}
			for _, part := range byOrder {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() []any { return []any{register{}} },
		Step: func(state, in, _ any) (next []any) {
			r, op := state.(register), in.(world.StoreCall)
			if op.Lost {
				next = append(next, r) // it has not happened
			}
			if after, ok := r.next(op); ok {
				next = append(next, after)
			}
			return next
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(in, _ any) string { return fmt.Sprintf("%+v", in) },
	}
	return one.ToModel()
}

func TestTheModelRejectsAStoreWithTwoOwners(t *testing.T) {
	t.Parallel()
	two := []world.StoreCall{
		{Call: ordertest.Begin, Order: "ORD-1", Owner: "a", Attempt: 1},
		{Call: ordertest.Begin, Order: "ORD-1", Owner: "b", Attempt: 2},
		{Call: ordertest.Bind, Order: "ORD-1", Owner: "a", Intent: "pi_1"},
	}
	if porcupine.CheckOperations(model(), operations(two)) {
		t.Error("the model accepts a bind of an owner that lost its claim")
	}
	two[2].Refused = true
	if !porcupine.CheckOperations(model(), operations(two)) {
		t.Error("the model rejects a refused bind")
	}
}

func operations(calls []world.StoreCall) (history []porcupine.Operation) {
	for i, op := range calls {
		start, end := cmp.Or(op.Start, int64(2*i)), cmp.Or(op.End, int64(2*i+1))
		if op.Lost {
			end = math.MaxInt64 // it may happen at any time
		}
		history = append(history, porcupine.Operation{ClientId: op.Client, Input: op, Call: start, Return: end})
	}
	return history
}

// Responses may be lost and calls may arrive late. Still there must be an order of the
// calls in which one row could have returned all responses.
func TestTheStoreIsLinearizable(t *testing.T) {
	t.Parallel()
	lab, checked := world.NewLab(), 0
	for seed := range uint64(1500) {
		c, choose := simulation.Drawn(seed)
		if c.People || c.Mistake || c.Reconcile || c.Cancels { // they write rows without the recorded calls
			continue
		}
		w := lab.NewWorld(c, choose).RecordStoreCalls()
		w.Run()
		checked += len(w.StoreCalls())
		if !porcupine.CheckOperations(model(), operations(w.StoreCalls())) {
			t.Fatalf("seed %d: %+v", seed, w.StoreCalls())
		}
	}
	if checked < 1000 {
		t.Errorf("only %d calls", checked)
	}
}

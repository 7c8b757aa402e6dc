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
)

// register is an order's row in a few words, written without a look at ordertest.Memory:
// what a caller may be told.
type register struct {
	owner, intent string
	status        order.Status
	attempt       int
}

// next says what the row is after a call, and whether the row may have answered it so.
// What was lost may have been answered in any way.
func (r register) next(op simulation.StoreCall) (after register, ok bool) {
	may, after := false, r
	switch op.Call { //nolint:exhaustive // the others are Stripe's
	case ordertest.Begin:
		may = r.status == "" || r.status == order.Open || r.status == order.Refused
		after.owner, after.status, after.attempt = op.Owner, order.Open, r.attempt+1
		if op.Refused {
			return r, r.attempt > 0 // only a row can refuse, and one that is held may
		}
		ok = may && op.Attempt == after.attempt && op.Intent == r.intent
	case ordertest.Bind:
		may = r.owner == op.Owner && (r.intent == "" || r.intent == op.Intent)
		after.intent, ok = op.Intent, may != op.Refused
	case ordertest.Finish:
		if r.status == op.Status && r.intent == op.Intent {
			return r, op.Lost || !op.Refused // it is said already
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

// model is one register for each order. A call whose answer was lost may have happened or
// not, so there are two.
func model() porcupine.Model {
	one := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byOrder := map[order.ID][]porcupine.Operation{}
			for _, op := range history {
				id := op.Input.(simulation.StoreCall).Order
				byOrder[id] = append(byOrder[id], op)
			}
			for _, part := range byOrder {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() []any { return []any{register{}} },
		Step: func(state, in, _ any) (next []any) {
			r, op := state.(register), in.(simulation.StoreCall)
			if op.Lost {
				next = append(next, r) // it did not happen
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

// A store that says yes to two owners must be noticed.
func TestTheModelSeesABrokenStore(t *testing.T) {
	t.Parallel()
	two := []simulation.StoreCall{
		{Call: ordertest.Begin, Order: "ORD-1", Owner: "a", Attempt: 1},
		{Call: ordertest.Begin, Order: "ORD-1", Owner: "b", Attempt: 2},
		{Call: ordertest.Bind, Order: "ORD-1", Owner: "a", Intent: "pi_1"},
	}
	if porcupine.CheckOperations(model(), operations(two)) {
		t.Error("a fenced owner has bound an intent, and the model accepts it")
	}
	two[2].Refused = true
	if !porcupine.CheckOperations(model(), operations(two)) {
		t.Error("the model refuses what is right")
	}
}

func operations(calls []simulation.StoreCall) (history []porcupine.Operation) {
	for i, op := range calls {
		start, end := cmp.Or(op.Start, int64(2*i)), cmp.Or(op.End, int64(2*i+1))
		if op.Lost {
			end = math.MaxInt64 // it may happen at any time
		}
		history = append(history, porcupine.Operation{ClientId: op.Client, Input: op, Call: start, Return: end})
	}
	return history
}

// What the store told its callers, whose answers may be lost and whose calls may arrive
// long after, is what one row could have told one caller after the other.
func TestTheStoreIsLinearizable(t *testing.T) {
	t.Parallel()
	lab, checked := simulation.NewLab(), 0
	for seed := range uint64(1500) {
		c, choose := simulation.Drawn(seed)
		if c.People || c.Mistake { // those write rows by other ways
			continue
		}
		w := lab.World(c, choose).Record()
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

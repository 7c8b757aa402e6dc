package simulation

import (
	"errors"
	"slices"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// StoreCall is a call to the store as its caller saw it, for a check of linearizability.
type StoreCall struct {
	Client        int
	Start, End    int64 // in the order of what happened; End only if an answer came
	Call          ordertest.Call
	Order         order.ID
	Owner, Intent string
	Status        order.Status
	Attempt       int
	Lost          bool // no answer came: it may have happened, or may happen at any later time
	Refused       bool
	Denied        bool // IAM refused it: it never reached the store
}

// Record makes the world note every call to its store.
func (w *World) Record() *World {
	w.recording = true
	return w
}

// StoreCalls are the calls that a recording world has noted, without those that never
// reached its store.
func (w *World) StoreCalls() []StoreCall {
	return slices.DeleteFunc(slices.Clone(w.calls), func(c StoreCall) bool { return c.Denied })
}

// noted makes a call to the store, and notes it in a world that records: as lost, until
// an answer comes.
func (k *Worker) noted(c call, sent StoreCall, do func() (answer, error)) error {
	if !k.recording {
		return k.call(c, do)
	}
	k.ticks++
	place := len(k.World.calls)
	sent.Client, sent.Call, sent.Start, sent.Lost = int(k.name[0]), c.name, k.ticks, true
	k.World.calls = append(k.World.calls, sent)
	var said answer
	err := k.call(c, func() (a answer, err error) {
		said, err = do()
		return said, err
	})
	k.ticks++
	op := &k.World.calls[place]
	if errors.Is(err, errDenied) {
		op.Denied = true
		return err
	}
	if errors.Is(err, ordertest.ErrConnection) {
		return err
	}
	op.End, op.Lost, op.Refused = k.ticks, false, err != nil
	if c.name == ordertest.Begin {
		op.Attempt, op.Intent = said.attempt, said.intent
	}
	return err
}

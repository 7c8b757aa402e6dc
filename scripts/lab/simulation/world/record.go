package world

import (
	"errors"
	"slices"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
)

// StoreCall is a call to the store as its caller saw it, for a check of linearizability.
type StoreCall struct {
	Client        int
	Start, End    int64 // the order of starts and ends; End is 0 without a response
	Call          ordertest.Call
	Order         order.ID
	Owner, Intent string
	Status        order.Status
	Attempt       int
	Lost          bool // no response: it may have happened, or may happen at any later time
	Refused       bool
	Denied        bool // IAM denied it: it never reached the store
}

// storeCalls are the recorded calls to the store.
type storeCalls struct {
	on    bool
	all   []StoreCall
	ticks int64
}

// RecordStoreCalls makes the world record every call to its store.
func (w *World) RecordStoreCalls() *World {
	w.calls.on = true
	return w
}

// StoreCalls returns the recorded calls that may have reached the store.
func (w *World) StoreCalls() []StoreCall {
	return slices.DeleteFunc(slices.Clone(w.calls.all), func(c StoreCall) bool { return c.Denied })
}

// storeCall makes a call to the store. A world that records its calls records it as lost
// until a response arrives.
func (k *Worker) storeCall(c oracle.Call, sent StoreCall, do func() (response, error)) error {
	calls := &k.world.calls
	if !calls.on {
		return k.call(c, do)
	}
	calls.ticks++
	place := len(calls.all)
	sent.Client, sent.Call, sent.Start, sent.Lost = int(k.seen.Name[0]), c.Name, calls.ticks, true
	calls.all = append(calls.all, sent)
	var got response
	err := k.call(c, func() (r response, err error) {
		got, err = do()
		return got, err
	})
	calls.ticks++
	op := &calls.all[place]
	op.Denied = errors.Is(err, errDenied)
	if op.Denied || errors.Is(err, ordertest.ErrConnection) {
		return err
	}
	op.End, op.Lost, op.Refused = calls.ticks, false, err != nil
	if c.Name == ordertest.Begin {
		op.Attempt, op.Intent = got.attempt, got.intent
	}
	return err
}

package refunds

import (
	"context"
	"errors"
	"iter"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// actor runs the product's code: a worker with a message, a Refresher, an
// operator. It is a coroutine that stops before each of its calls.
type actor struct {
	*World

	name     string
	skew     time.Duration // of its clock
	frozen   bool
	next     call
	fault    fault
	answered time.Time // when Stripe last answered on its connection
	unknown  bool      // what it refunds was called unknown before it opened its connection
	request  *refund.Request

	yield  func(struct{}) bool
	resume func() (struct{}, bool)
	stop   func()
}

// call is a call that an actor is about to make.
type call struct {
	name string
	kind callKind
}

// callKind is what can happen to a call.
type callKind int

const (
	write  callKind = iota // to the store
	load                   // from the store
	read                   // from Stripe
	create                 // a refund
	effect                 // of the charge: prepare, confirm, cancel
)

// fault is what happens to a call.
type fault string

const (
	none         fault = ""
	lost         fault = "the request is lost"
	unanswered   fault = "done, but the answer is lost"
	diesBefore   fault = "the worker dies before it"
	diesAfter    fault = "done, and the worker dies"
	diesSending  fault = "the worker dies, and the request is on its way"
	unavailable  fault = "503"
	failure      fault = "a 500 that is kept under the key"
	failureAfter fault = "done, but a 500 that is kept under the key"
)

// faults returns what can happen to a call of this kind.
func (k callKind) faults() []fault {
	switch k {
	case load, read:
		return []fault{unavailable, diesBefore}
	case create:
		return []fault{lost, unanswered, failure, failureAfter, diesBefore, diesAfter, diesSending, unavailable}
	case write, effect:
	}
	return []fault{lost, unanswered, diesBefore, diesAfter}
}

// weight is how much more often than another deviation a call of this kind fails. The
// answer to a create matters most.
func (k callKind) weight() int {
	if k == create {
		return 5
	}
	return 1
}

// killed unwinds the stack of an actor that dies.
type killed struct{}

// start starts an actor and runs it to its first call.
func (w *World) start(name string, skew time.Duration, work func(a *actor)) {
	a := &actor{World: w, name: name, skew: skew}
	a.resume, a.stop = iter.Pull(func(yield func(struct{}) bool) {
		a.yield = yield
		defer func() {
			if p := recover(); p != nil && p != (killed{}) {
				panic(p)
			}
		}()
		work(a)
	})
	w.actors = append(w.actors, a)
	w.run(a)
}

// clock returns the time by the actor's clock.
func (a *actor) clock() time.Time { return a.now.Add(a.skew) }

// do makes a call when the world lets it, with the fault that the world has chosen.
func (a *actor) do(c call, do func() error) error {
	a.next, a.fault = c, none
	if !a.yield(struct{}{}) {
		panic(killed{})
	}
	a.dirty = a.dirty || c.kind != load && c.kind != read
	switch a.fault {
	case diesBefore:
		panic(killed{})
	case lost, unavailable, failure, failureAfter, diesSending:
		if c.kind != create {
			return a.failed(c)
		}
	case none, unanswered, diesAfter:
	}
	if c.kind == create {
		return a.create(do)
	}
	err := do()
	switch a.fault { //nolint:exhaustive // the others are above
	case diesAfter:
		panic(killed{})
	case unanswered:
		return a.failed(c)
	}
	if c.kind == read && err == nil {
		a.answered = a.now
	}
	return err
}

var errConnection = errors.New("connection lost")

// failed returns the error of a call that was not answered.
func (a *actor) failed(c call) error {
	switch c.kind {
	case read:
		return &order.PaymentError{Kind: order.KindUnavailable, Err: errConnection}
	case effect, create:
		return &order.PaymentError{Kind: order.KindUnknown, Err: errConnection}
	case write, load:
	}
	return errConnection
}

// create sends the request for a refund to the bank, which applies the fault.
func (a *actor) create(do func() error) error {
	inject := map[fault]ordertest.Fault{
		lost: ordertest.LosesRequest, diesSending: ordertest.LosesRequest, unanswered: ordertest.LosesResponse,
		diesAfter: ordertest.LosesResponse, unavailable: ordertest.ReturnsUnavailable,
		failure: ordertest.StoresFailure, failureAfter: ordertest.StoresFailureAfterEffect,
	}
	if f, ok := inject[a.fault]; ok {
		a.bank.Fail(refundtest.Create, f)
	}
	if a.unknown && a.request != nil {
		a.violated(Settles, a.request.OrderID(), "refund %s is unknown, and is requested again", a.request.ID())
	}
	waiting := a.bank.Late()
	err := do()
	if a.bank.Late() > waiting {
		a.sendLate(waiting, a.fault != failure, a.answered)
	}
	if a.fault == diesAfter || a.fault == diesSending {
		panic(killed{})
	}
	if a.fault != lost && a.fault != unanswered {
		a.answered = a.now
	}
	return err
}

// refunds returns the ports of a Processor or a Refresher of this actor.
func (a *actor) refunds() refundtest.Intercepted {
	intercept := func(c refundtest.Call, do func() error) error {
		switch c { //nolint:exhaustive // the others write
		case refundtest.Read:
			return a.do(call{string(c), read}, func() error { a.unknown = a.isUnknown(a.request); return do() })
		case refundtest.ReadRefund:
			return a.do(call{string(c), read}, do)
		case refundtest.Create:
			return a.do(call{string(c), create}, do)
		case refundtest.Mark, refundtest.Finish, refundtest.Release:
			return a.do(call{string(c), write}, func() error {
				before, _ := a.item(*a.request)
				err := do()
				a.checkOwner(a, c, before)
				return err
			})
		}
		return a.do(call{string(c), write}, do)
	}
	return refundtest.Intercepted{Claims: a.store, Provider: a.bank, Intercept: intercept}
}

// charges returns the ports of an order's Processor or Cancellation of this actor.
func (a *actor) charges() ordertest.Intercepted {
	intercept := func(c ordertest.Call, do func() error) error {
		kind := write
		switch c { //nolint:exhaustive // the others write
		case ordertest.Read, ordertest.Find:
			kind = read
		case ordertest.Prepare, ordertest.Confirm:
			kind = effect
		}
		return a.do(call{string(c), kind}, do)
	}
	return ordertest.Intercepted{Claims: a.orders, Payments: a.intents, Intercept: intercept}
}

// records makes each call of a Refresher to the store a call of its actor.
type records struct {
	refund.Records

	*actor
}

func (r records) Account(ctx context.Context, id order.ID) (a refund.Account, err error) {
	err = r.do(call{"load account", load}, func() error {
		a, err = r.Records.Account(ctx, id)
		return err
	})
	return a, err
}

func (r records) Apply(ctx context.Context, c refund.Change) error {
	return r.do(call{"apply", write}, func() error { return r.Records.Apply(ctx, c) })
}

// operator makes each call of a Cancellation to store and Stripe a call of its actor.
type operator struct {
	order.Records
	order.Canceler

	*actor
}

func (o operator) Load(ctx context.Context, id order.ID) (r order.Record, err error) {
	err = o.do(call{"load order", load}, func() error {
		r, err = o.Records.Load(ctx, id)
		return err
	})
	return r, err
}

func (o operator) Settle(ctx context.Context, r order.Record, outcome order.Outcome, at time.Time) error {
	return o.do(call{"settle", write}, func() error { return o.Records.Settle(ctx, r, outcome, at) })
}

func (o operator) CancelIntent(
	ctx context.Context, id order.IntentID, k order.Key,
) (i order.Intent, err error) {
	err = o.do(call{"cancel intent", effect}, func() error {
		i, err = o.Canceler.CancelIntent(ctx, id, k)
		return err
	})
	return i, err
}

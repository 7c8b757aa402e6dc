package refunds

import (
	"errors"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/scripts/lab/stage"
)

// The faults of calls to Stripe alone.
const (
	diesSending  stage.Fault = "the worker dies, and the request is on its way"
	unavailable  stage.Fault = "503"
	failure      stage.Fault = "a 500 that is kept under the key"
	failureAfter stage.Fault = "done, but a 500 that is kept under the key"
)

type kind int

const (
	write  kind = iota // to the store
	load               // from the store
	read               // from Stripe
	create             // a refund
	effect             // of the charge: prepare, confirm, cancel
)

// faults returns what can happen to a call of this kind.
func (k kind) faults() []stage.Fault {
	switch k {
	case load, read:
		return []stage.Fault{unavailable, stage.DiesBefore}
	case create:
		return []stage.Fault{
			stage.Lost, stage.Unanswered, failure, failureAfter, stage.DiesBefore, stage.DiesAfter, diesSending,
			unavailable,
		}
	case write, effect:
	}
	return []stage.Fault{stage.Lost, stage.Unanswered, stage.DiesBefore, stage.DiesAfter}
}

var errConnection = errors.New("connection lost")

func (k kind) unanswered() error {
	switch k {
	case read:
		return &order.PaymentError{Kind: order.KindUnavailable, Err: errConnection}
	case effect, create:
		return &order.PaymentError{Kind: order.KindUnknown, Err: errConnection}
	case write, load:
	}
	return errConnection
}

// do makes a call when the stage lets it, with the fault that the stage has chosen.
func (a *actor) do(name string, k kind, do func() error) (err error) {
	f := a.as.Do(stage.Call{Name: name, Faults: k.faults()}, func() {
		a.dirty = a.dirty || k == write || k == effect
		err = do()
	})
	if f != stage.None {
		return k.unanswered()
	}
	if k == read && err == nil {
		a.answered = a.Now
	}
	return err
}

// create sends the request for a refund to the bank, which applies the fault.
func (a *actor) create(name string, do func() error) error {
	f := a.as.Await(stage.Call{Name: name, Faults: create.faults()})
	a.dirty = true
	inject := map[stage.Fault]ordertest.Fault{
		stage.Lost: ordertest.LosesRequest, diesSending: ordertest.LosesRequest,
		stage.Unanswered: ordertest.LosesResponse, stage.DiesAfter: ordertest.LosesResponse,
		unavailable: ordertest.ReturnsUnavailable, failure: ordertest.StoresFailure,
		failureAfter: ordertest.StoresFailureAfterEffect,
	}
	if kind, ok := inject[f]; ok {
		a.bank.Fail(refundtest.Create, kind)
	}
	if a.unknown && a.request != nil {
		a.violated(Settles, a.request.OrderID(), "refund %s is unknown, and is requested again", a.request.ID())
	}
	waiting := a.bank.Late()
	err := do()
	if a.bank.Late() > waiting {
		a.sendLate(waiting, f != failure, a.answered)
	}
	if f == stage.DiesAfter || f == diesSending {
		a.as.Die()
	}
	if f != stage.Lost && f != stage.Unanswered {
		a.answered = a.Now
	}
	return err
}

func (a *actor) refunds() refundtest.Intercepted {
	intercept := func(c refundtest.Call, do func() error) error {
		switch c { //nolint:exhaustive // the others write
		case refundtest.Load:
			return a.do("load account", load, do)
		case refundtest.Read:
			return a.do(string(c), read, func() error {
				a.unknown = a.statusOf(a.request) == refund.Unknown
				return do()
			})
		case refundtest.ReadRefund:
			return a.do(string(c), read, do)
		case refundtest.Create:
			return a.create(string(c), do)
		case refundtest.Mark, refundtest.Finish, refundtest.Release:
			if a.request == nil { // a Refresher
				return a.do("apply", write, do)
			}
			return a.do(string(c), write, func() error {
				before, _ := a.item(*a.request)
				err := do()
				a.checkOwner(a, c, before)
				return err
			})
		}
		return a.do(string(c), write, do)
	}
	return refundtest.Intercepted{Store: a.store, Provider: a.bank, Intercept: intercept}
}

func (a *actor) charges() ordertest.Intercepted {
	intercept := func(c ordertest.Call, do func() error) error {
		kind := write
		switch c { //nolint:exhaustive // the others write
		case ordertest.Load:
			kind = load
		case ordertest.Read, ordertest.Find:
			kind = read
		case ordertest.Prepare, ordertest.Confirm, ordertest.Cancel:
			kind = effect
		}
		return a.do(string(c), kind, do)
	}
	return ordertest.Intercepted{Store: a.orders, Payments: a.intents, Canceler: a.intents, Intercept: intercept}
}

package ordertest

import (
	"context"
	"errors"
	"time"

	"orderonce/domain/order"
)

// Around is told of each call to a port. It makes the call, or does not, and may lose its
// answer.
type Around func(c Call, do func() error) error

// Wire stands between a Processor and its two ports, as a network does.
type Wire struct {
	Claims   order.Claims
	Payments order.Payments
	Around   Around
}

var (
	_ order.Claims   = Wire{}
	_ order.Payments = Wire{}
)

// Begin is the Claims' own, through Around.
func (w Wire) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	return through(w.Around, Begin, func() (order.Claim, error) { return w.Claims.Begin(ctx, o, l) })
}

// Bind is the Claims' own, through Around.
func (w Wire) Bind(ctx context.Context, c order.Claim, i order.Intent, at time.Time) error {
	return w.Around(Bind, func() error { return w.Claims.Bind(ctx, c, i, at) })
}

// Finish is the Claims' own, through Around.
func (w Wire) Finish(ctx context.Context, c order.Claim, o order.Outcome, at time.Time) error {
	return w.Around(Finish, func() error { return w.Claims.Finish(ctx, c, o, at) })
}

// Release is the Claims' own, through Around.
func (w Wire) Release(ctx context.Context, c order.Claim, why order.Reason, at time.Time) error {
	return w.Around(Release, func() error { return w.Claims.Release(ctx, c, why, at) })
}

// Prepare is the Payments' own, through Around.
func (w Wire) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	return through(w.Around, Prepare, func() (order.Intent, error) { return w.Payments.Prepare(ctx, o, k) })
}

// Confirm is the Payments' own, through Around.
func (w Wire) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return through(w.Around, Confirm, func() (order.Intent, error) { return w.Payments.Confirm(ctx, id, k) })
}

// Read is the Payments' own, through Around.
func (w Wire) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return through(w.Around, Read, func() (order.Intent, error) { return w.Payments.Read(ctx, id) })
}

// Find is the Payments' own, through Around.
func (w Wire) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	return through(w.Around, Find, func() ([]order.Intent, error) { return w.Payments.Find(ctx, id) })
}

func through[T any](
	around Around,
	c Call,
	do func() (T, error),
) (T, error) { //nolint:ireturn // T is a struct or a list at every call
	var got, none T
	if err := around(c, func() (err error) { got, err = do(); return err }); err != nil {
		return none, err
	}
	return got, nil
}

// ErrConnection is what is left of a call whose answer never came.
var ErrConnection = errors.New("connection lost")

// LosesTheAnswerOf lets every call happen, but loses the answer to calls of this kind.
func LosesTheAnswerOf(lost Call) Around {
	return func(c Call, do func() error) error {
		if err := do(); c != lost {
			return err
		}
		return ErrConnection
	}
}

// NeverReaches drops calls of this kind before they happen; others go through.
func NeverReaches(lost Call) Around {
	return func(c Call, do func() error) error {
		if c == lost {
			return ErrConnection
		}
		return do()
	}
}

// Crash is what DiesAt panics with, standing in for a process that died.
type Crash struct{ Call Call }

// DiesAt kills the worker at its nth call, from 0: before the call happens or just after
// it did.
func DiesAt(n int, before bool) Around {
	return func(c Call, do func() error) error {
		n--
		if n == -1 && before {
			panic(Crash{c})
		}
		err := do()
		if n == -1 {
			panic(Crash{c})
		}
		return err
	}
}

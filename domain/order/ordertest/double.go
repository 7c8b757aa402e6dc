package ordertest

import (
	"context"
	"errors"
	"time"

	"orderonce/domain/order"
)

// Interceptor is told of each call to a port. It makes the call, or does not, and may lose its
// answer.
type Interceptor func(c Call, do func() error) error

// Intercepted stands between a Processor and its two ports, as a network does.
type Intercepted struct {
	Claims    order.Claims
	Payments  order.Payments
	Intercept Interceptor
}

var (
	_ order.Claims   = Intercepted{}
	_ order.Payments = Intercepted{}
)

// Begin is the Claims' own, through Interceptor.
func (w Intercepted) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	return through(w.Intercept, Begin, func() (order.Claim, error) { return w.Claims.Begin(ctx, o, l) })
}

// Bind is the Claims' own, through Interceptor.
func (w Intercepted) Bind(ctx context.Context, c order.Claim, i order.Intent, at time.Time) error {
	return w.Intercept(Bind, func() error { return w.Claims.Bind(ctx, c, i, at) })
}

// Finish is the Claims' own, through Interceptor.
func (w Intercepted) Finish(ctx context.Context, c order.Claim, o order.Outcome, at time.Time) error {
	return w.Intercept(Finish, func() error { return w.Claims.Finish(ctx, c, o, at) })
}

// Release is the Claims' own, through Interceptor.
func (w Intercepted) Release(ctx context.Context, c order.Claim, why order.Reason, at time.Time) error {
	return w.Intercept(Release, func() error { return w.Claims.Release(ctx, c, why, at) })
}

// Prepare is the Payments' own, through Interceptor.
func (w Intercepted) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	return through(w.Intercept, Prepare, func() (order.Intent, error) { return w.Payments.Prepare(ctx, o, k) })
}

// Confirm is the Payments' own, through Interceptor.
func (w Intercepted) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return through(w.Intercept, Confirm, func() (order.Intent, error) { return w.Payments.Confirm(ctx, id, k) })
}

// Read is the Payments' own, through Interceptor.
func (w Intercepted) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return through(w.Intercept, Read, func() (order.Intent, error) { return w.Payments.Read(ctx, id) })
}

// Find is the Payments' own, through Interceptor.
func (w Intercepted) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	return through(w.Intercept, Find, func() ([]order.Intent, error) { return w.Payments.Find(ctx, id) })
}

func through[T any](
	intercept Interceptor,
	c Call,
	do func() (T, error),
) (T, error) { //nolint:ireturn // T is a struct or a list at every call
	var got, none T
	if err := intercept(c, func() (err error) { got, err = do(); return err }); err != nil {
		return none, err
	}
	return got, nil
}

// ErrConnection is what is left of a call whose answer never came.
var ErrConnection = errors.New("connection lost")

// LoseResponseOf lets every call happen, but loses the answer to calls of this kind.
func LoseResponseOf(lost Call) Interceptor {
	return func(c Call, do func() error) error {
		if err := do(); c != lost {
			return err
		}
		return ErrConnection
	}
}

// LoseRequestOf drops calls of this kind before they happen; others go through.
func LoseRequestOf(lost Call) Interceptor {
	return func(c Call, do func() error) error {
		if c == lost {
			return ErrConnection
		}
		return do()
	}
}

// Crash is what CrashAt panics with, standing in for a process that died.
type Crash struct{ Call Call }

// CrashAt kills the worker at its nth call, from 0: before the call happens or just after
// it did.
func CrashAt(n int, before bool) Interceptor {
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

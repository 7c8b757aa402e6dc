package ordertest

import (
	"context"
	"errors"
	"time"

	"orderonce/domain/order"
)

// Interceptor runs in place of each call to a port. do makes the call: an Interceptor may
// skip it, and may replace its error.
type Interceptor func(c Call, do func() error) error

// Intercepted passes each call to Claims and Payments through Intercept, so that a test
// can fail calls as a network does.
type Intercepted struct {
	Claims    order.Claims
	Payments  order.Payments
	Intercept Interceptor
}

var (
	_ order.Claims   = Intercepted{}
	_ order.Payments = Intercepted{}
)

// Begin calls Claims.Begin through Intercept.
func (w Intercepted) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	return through(w.Intercept, Begin, func() (order.Claim, error) { return w.Claims.Begin(ctx, o, l) })
}

// Bind calls Claims.Bind through Intercept.
func (w Intercepted) Bind(ctx context.Context, c order.Claim, i order.Intent, at time.Time) error {
	return w.Intercept(Bind, func() error { return w.Claims.Bind(ctx, c, i, at) })
}

// Finish calls Claims.Finish through Intercept.
func (w Intercepted) Finish(ctx context.Context, c order.Claim, o order.Outcome, at time.Time) error {
	return w.Intercept(Finish, func() error { return w.Claims.Finish(ctx, c, o, at) })
}

// Release calls Claims.Release through Intercept.
func (w Intercepted) Release(ctx context.Context, c order.Claim, why order.Reason, at time.Time) error {
	return w.Intercept(Release, func() error { return w.Claims.Release(ctx, c, why, at) })
}

// Prepare calls Payments.Prepare through Intercept.
func (w Intercepted) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	return through(w.Intercept, Prepare, func() (order.Intent, error) { return w.Payments.Prepare(ctx, o, k) })
}

// Confirm calls Payments.Confirm through Intercept.
func (w Intercepted) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return through(w.Intercept, Confirm, func() (order.Intent, error) { return w.Payments.Confirm(ctx, id, k) })
}

// Read calls Payments.Read through Intercept.
func (w Intercepted) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return through(w.Intercept, Read, func() (order.Intent, error) { return w.Payments.Read(ctx, id) })
}

// Find calls Payments.Find through Intercept.
func (w Intercepted) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	return through(w.Intercept, Find, func() ([]order.Intent, error) { return w.Payments.Find(ctx, id) })
}

//nolint:ireturn // T is a struct or a list at every call
func through[T any](intercept Interceptor, c Call, do func() (T, error)) (T, error) {
	var got, none T
	if err := intercept(c, func() (err error) { got, err = do(); return err }); err != nil {
		return none, err
	}
	return got, nil
}

// ErrConnection is the error of a call whose request or response was lost.
var ErrConnection = errors.New("connection lost")

// LoseResponseOf makes every call, and replaces the result of this kind of call by
// ErrConnection.
func LoseResponseOf(lost Call) Interceptor {
	return func(c Call, do func() error) error {
		if err := do(); c != lost {
			return err
		}
		return ErrConnection
	}
}

// LoseRequestOf returns ErrConnection for this kind of call without making it.
func LoseRequestOf(lost Call) Interceptor {
	return func(c Call, do func() error) error {
		if c == lost {
			return ErrConnection
		}
		return do()
	}
}

// Crash is the panic value of CrashAt. It represents the end of the process.
type Crash struct{ Call Call }

// CrashAt panics with a Crash at the nth call, from 0: just before or just after it.
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

package ordertest

import (
	"context"
	"errors"

	"orderonce/domain/order"
)

// Interceptor runs in place of each call to a port. do makes the call: an Interceptor may
// skip it, and may replace its error.
type Interceptor func(c Call, do func() error) error

// Intercepted passes each call to Store and Payments through Intercept, so that a test
// can fail calls as a network does. A Save is the call that CallOf names.
type Intercepted struct {
	Store     order.Store
	Payments  order.Payments
	Canceler  order.Canceler
	Intercept Interceptor
	Change    func(Call, *order.Intent) // of each intent that a call returns; nil: none
}

var (
	_ order.Store    = Intercepted{}
	_ order.Payments = Intercepted{}
	_ order.Canceler = Intercepted{}
)

// CallOf returns what a write of after in place of before does. An outcome that is
// settled later is a Finish too.
func CallOf(before, after order.Record) Call {
	switch {
	case after.Owner != "" && (after.Owner != before.Owner || after.Attempt > before.Attempt):
		return Begin
	case after.Dispute != before.Dispute:
		return RecordDispute
	case after.Status != before.Status && before.Status != "":
		return Finish
	case after.Intent != before.Intent && after.Owner != "":
		return Bind
	case after.Intent != before.Intent:
		return Recreate
	case after.Owner != before.Owner:
		return Release
	case !after.ParkedAt.Equal(before.ParkedAt):
		return NoteParked
	}
	return Postpone
}

// Load calls Store.Load through Intercept.
func (w Intercepted) Load(ctx context.Context, id order.ID) (order.Record, error) {
	return Through(w.Intercept, Load, func() (order.Record, error) { return w.Store.Load(ctx, id) })
}

// Save calls Store.Save through Intercept.
func (w Intercepted) Save(ctx context.Context, before, after order.Record) (now order.Record, err error) {
	err = w.Intercept(CallOf(before, after), func() error {
		now, err = w.Store.Save(ctx, before, after)
		return err
	})
	return now, err
}

// Prepare calls Payments.Prepare through Intercept.
func (w Intercepted) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	return w.intent(Prepare, func() (order.Intent, error) { return w.Payments.Prepare(ctx, o, k) })
}

// Confirm calls Payments.Confirm through Intercept.
func (w Intercepted) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return w.intent(Confirm, func() (order.Intent, error) { return w.Payments.Confirm(ctx, id, k) })
}

// Read calls Payments.Read through Intercept.
func (w Intercepted) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return w.intent(Read, func() (order.Intent, error) { return w.Payments.Read(ctx, id) })
}

// CancelIntent calls Canceler.CancelIntent through Intercept.
func (w Intercepted) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return w.intent(Cancel, func() (order.Intent, error) { return w.Canceler.CancelIntent(ctx, id, k) })
}

// Find calls Payments.Find through Intercept.
func (w Intercepted) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	return Through(w.Intercept, Find, func() ([]order.Intent, error) { return w.Payments.Find(ctx, id) })
}

func (w Intercepted) intent(c Call, do func() (order.Intent, error)) (order.Intent, error) {
	i, err := Through(w.Intercept, c, do)
	if err == nil && w.Change != nil {
		w.Change(c, &i)
	}
	return i, err
}

// Through makes a call that has a result through intercept.
//
//nolint:ireturn // T is a struct or a list at every call
func Through[T any](intercept Interceptor, c Call, do func() (T, error)) (T, error) {
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

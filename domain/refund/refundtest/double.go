package refundtest

import (
	"context"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Interceptor runs in place of each call to a port. do makes the call: an Interceptor may
// skip it, and may replace its error.
type Interceptor func(c Call, do func() error) error

// Intercepted passes each call to Claims and Provider through Intercept.
type Intercepted struct {
	Claims    refund.Claims
	Provider  refund.Provider
	Intercept Interceptor
}

var (
	_ refund.Claims   = Intercepted{}
	_ refund.Provider = Intercepted{}
)

// Begin calls Claims.Begin through Intercept.
func (w Intercepted) Begin(ctx context.Context, r refund.Request, l order.Lease) (refund.Claim, error) {
	return through(w.Intercept, Begin, func() (refund.Claim, error) { return w.Claims.Begin(ctx, r, l) })
}

// Mark calls Claims.Mark through Intercept.
func (w Intercepted) Mark(
	ctx context.Context, c refund.Claim, keySeq int, now time.Time,
) (refund.Claim, error) {
	return through(w.Intercept, Mark, func() (refund.Claim, error) { return w.Claims.Mark(ctx, c, keySeq, now) })
}

// Finish calls Claims.Finish through Intercept.
func (w Intercepted) Finish(ctx context.Context, c refund.Claim, o refund.Outcome, at time.Time) error {
	return w.Intercept(Finish, func() error { return w.Claims.Finish(ctx, c, o, at) })
}

// Release calls Claims.Release through Intercept.
func (w Intercepted) Release(ctx context.Context, c refund.Claim, why order.Reason, at time.Time) error {
	return w.Intercept(Release, func() error { return w.Claims.Release(ctx, c, why, at) })
}

// Open opens a session whose calls go through Intercept.
func (w Intercepted) Open(ctx context.Context) refund.Session { //nolint:ireturn // as the port
	return interceptedSession{w.Provider.Open(ctx), w.Intercept}
}

type interceptedSession struct {
	refund.Session

	intercept Interceptor
}

func (s interceptedSession) Read(ctx context.Context, id order.IntentID) (refund.Ledger, error) {
	return through(s.intercept, Read, func() (refund.Ledger, error) { return s.Session.Read(ctx, id) })
}

func (s interceptedSession) ReadRefund(ctx context.Context, id refund.ProviderID) (refund.Refund, error) {
	return through(s.intercept, ReadRefund, func() (refund.Refund, error) {
		return s.Session.ReadRefund(ctx, id)
	})
}

func (s interceptedSession) Create(ctx context.Context, o refund.Order) (refund.Refund, error) {
	return through(s.intercept, Create, func() (refund.Refund, error) { return s.Session.Create(ctx, o) })
}

//nolint:ireturn // T is a struct at every call
func through[T any](intercept Interceptor, c Call, do func() (T, error)) (T, error) {
	var got, none T
	if err := intercept(c, func() (err error) { got, err = do(); return err }); err != nil {
		return none, err
	}
	return got, nil
}

package refundtest

import (
	"context"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
)

// Intercepted passes each call to Store and Provider through Intercept. A Save is the
// call that CallOf names.
type Intercepted struct {
	Store     refund.Store
	Provider  refund.Provider
	Intercept Interceptor
}

var (
	_ refund.Store    = Intercepted{}
	_ refund.Provider = Intercepted{}
)

// CallOf returns what a write of after in place of before does. Finish and Apply write
// the same: both are a Finish.
func CallOf(before, after refund.Account) Call {
	if after.Seq > before.Seq {
		return Finish
	}
	for _, is := range after.Items {
		switch was, _ := before.Item(is.ID); {
		case is.Attempt > was.Attempt:
			return Begin
		case is.Owner != was.Owner:
			return Release
		}
	}
	return Mark
}

// Load calls Store.Load through Intercept.
func (w Intercepted) Load(ctx context.Context, id order.ID) (refund.Account, error) {
	return ordertest.Through(w.Intercept, Load, func() (refund.Account, error) { return w.Store.Load(ctx, id) })
}

// Save calls Store.Save through Intercept.
func (w Intercepted) Save(ctx context.Context, before, after refund.Account) (now refund.Account, err error) {
	err = w.Intercept(CallOf(before, after), func() error {
		now, err = w.Store.Save(ctx, before, after)
		return err
	})
	return now, err
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
	return ordertest.Through(s.intercept, Read, func() (refund.Ledger, error) { return s.Session.Read(ctx, id) })
}

func (s interceptedSession) ReadRefund(ctx context.Context, id refund.ProviderID) (refund.Refund, error) {
	return ordertest.Through(s.intercept, ReadRefund, func() (refund.Refund, error) {
		return s.Session.ReadRefund(ctx, id)
	})
}

func (s interceptedSession) Create(ctx context.Context, o refund.CreateParams) (refund.Refund, error) {
	return ordertest.Through(s.intercept, Create, func() (refund.Refund, error) {
		return s.Session.Create(ctx, o)
	})
}

package run

import (
	"context"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// moment is when an operator cancels an order: as a call for it arrives at Stripe, or
// when Stripe has executed the call.
type moment struct {
	call   stripetest.Endpoint // "": the order is not canceled
	before bool
}

// canceledShare is the share of the orders that an operator cancels.
const canceledShare = 0.02

// cancels returns when an operator cancels an order: before or after its intent is
// created, or before or after it is confirmed.
func (s Workload) cancels(n int) (m moment) {
	dice := s.dice(cancelDice, n)
	if !s.Later || dice.Float64() >= canceledShare {
		return moment{}
	}
	if m = (moment{stripetest.Create, dice.IntN(2) == 0}); dice.IntN(2) == 0 {
		m.call = stripetest.Confirm
	}
	return m
}

// cancelAt cancels the order of a call, as the command orders cancel does, if its moment
// has come. The operator does not wait for the function, nor the function for the
// operator. A cancel that fails is tried again at the order's next call of this kind.
func (st *storm) cancelAt(ctx context.Context, c stripetest.Call, before bool) {
	n := st.Workload.numberOf(c.OrderID)
	if n < 0 || st.Workload.cancels(n) != (moment{c.Endpoint, before}) {
		return
	}
	s := st.system.Load()
	canceling := order.Cancellation{
		Store: s.Store, Payments: s.Payments, Canceler: s.Payments, Scope: system.Scope,
	}
	st.canceling.Add(1)
	go func() {
		defer st.canceling.Add(-1)
		_, _ = canceling.Cancel(ctx, order.ID(c.OrderID), time.Now()) // the audit looks at what came of it
	}()
}

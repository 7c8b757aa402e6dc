package refunds

import (
	"context"
	"errors"
	"strconv"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Consumer processes a message in place of the product. Then the oracle checks only what
// Stripe made.
type Consumer func(ctx context.Context, a *actor, message int, r refund.Request) order.Result

// Baseline is a common way to make a refund once.
type Baseline struct {
	Name, Does string
	Consume    Consumer
}

// Baselines returns two common ones: they have no table, and trust Stripe's key.
func Baselines() []Baseline {
	from := func(what string, key func(message int, r refund.Request) string) Baseline {
		return Baseline{"key from the " + what, "one POST with an idempotency key from the " + what, func(
			ctx context.Context, a *actor, message int, r refund.Request,
		) order.Result {
			return a.post(ctx, r, key(message, r))
		}}
	}
	return []Baseline{
		from("refund id", func(_ int, r refund.Request) string { return string(r.OrderID()) + "/" + string(r.ID()) }),
		from("message id", func(message int, _ refund.Request) string { return strconv.Itoa(message) }),
	}
}

// post makes a refund in one request on a new connection, as the SDK does.
func (a *actor) post(ctx context.Context, r refund.Request, key string) order.Result {
	charged, _ := a.orders.Peek(r.OrderID())
	if charged.Intent == "" {
		return order.Result{Verdict: order.Redeliver, Reason: refund.ReasonNotCharged}
	}
	err := a.create("post", func() error {
		s := a.bank.Open(ctx)
		defer s.Close()
		if _, err := s.Read(ctx, charged.Intent); err != nil {
			return err
		}
		a.answered = a.Now
		_, err := s.Create(ctx, refund.Order{
			Intent: charged.Intent, OrderID: r.OrderID(), ID: r.ID(), Amount: r.Amount(), Reason: r.Reason(), Key: key,
		})
		return err
	})
	refused, is := errors.AsType[*order.PaymentError](err)
	switch {
	case err == nil:
		return order.Result{Verdict: order.Done, Reason: order.ReasonSettled}
	case is && (refused.Kind == order.KindRefused || refused.Kind == order.KindKeyReused):
		return order.Result{Verdict: order.Park, Reason: refund.ReasonRefused, Err: err}
	}
	return order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnknown, Err: err}
}

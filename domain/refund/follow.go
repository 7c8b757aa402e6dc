package refund

import (
	"context"
	"errors"

	"orderonce/domain/order"
)

// HintRefunded is the result of a hint after which a change of an order's refunds was
// recorded.
const HintRefunded order.Followed = "refunded"

// Follower acts on hints as package order does, and looks at an order's refunds if the
// hint is of one.
type Follower struct {
	Orders    func(context.Context, order.Hint) (order.Followed, order.Record, error)
	Refresher Refresher
}

// Follow first lets Orders follow the hint, so that the order shows its charge. It never
// moves money. Errors: those of Orders and of Refresher.Refresh.
func (f *Follower) Follow(ctx context.Context, h order.Hint) (order.Followed, order.Record, error) {
	followed, r, err := f.Orders(ctx, h)
	if err != nil || !h.Refunded || r.OrderID == "" {
		return followed, r, err
	}
	seq := r.Seq
	if followed == order.HintSettled {
		seq++
	}
	account, err := f.Refresher.Refresh(ctx, r.OrderID)
	if errors.Is(err, order.ErrStale) { // a worker, or another hint, was faster
		account, err = f.Refresher.Refresh(ctx, r.OrderID)
	}
	if err == nil && account.Seq > seq {
		followed = HintRefunded
	}
	return followed, r, err
}

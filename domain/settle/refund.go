package settle

import (
	"context"
	"errors"

	"orderonce/domain/order"
)

// HintRefunded is the result of a hint after which a change of an order's refunds was
// recorded.
const HintRefunded Followed = "refunded"

// RefundFollower acts on hints as Orders does, and looks at an order's refunds if the
// hint is of one.
type RefundFollower struct {
	Orders func(context.Context, Hint) (Followed, order.Record, error)
	// Refresh records what became of an order's refunds, see refund.Refresher, and returns
	// the order's number of events.
	Refresh func(context.Context, order.ID) (seq int, err error)
}

// Follow first lets Orders follow the hint, so that the order shows its charge. It never
// moves money. Errors: those of Orders and of Refresh.
func (f *RefundFollower) Follow(ctx context.Context, h Hint) (Followed, order.Record, error) {
	followed, r, err := f.Orders(ctx, h)
	if err != nil || !h.Refunded || r.OrderID == "" {
		return followed, r, err
	}
	before := r.Seq
	if followed == HintSettled {
		before++
	}
	seq, err := f.Refresh(ctx, r.OrderID)
	if errors.Is(err, order.ErrStale) { // a worker, or another hint, was faster
		seq, err = f.Refresh(ctx, r.OrderID)
	}
	if err == nil && seq > before {
		followed = HintRefunded
	}
	return followed, r, err
}

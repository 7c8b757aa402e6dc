package order_test

import (
	"context"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// changedIntents is a provider that changes the intent in its first responses to one kind
// of call.
type changedIntents struct {
	order.Payments

	on     ordertest.Call
	times  int
	change func(i *order.Intent)
	left   *int
}

func (p changedIntents) fresh() changedIntents {
	p.left = new(p.times)
	return p
}

func (p changedIntents) response(c ordertest.Call, i order.Intent, err error) (order.Intent, error) {
	if err == nil && c == p.on && *p.left > 0 {
		*p.left--
		p.change(&i)
	}
	return i, err
}

func (p changedIntents) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	i, err := p.Payments.Prepare(ctx, o, k)
	return p.response(ordertest.Prepare, i, err)
}

func (p changedIntents) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	i, err := p.Payments.Confirm(ctx, id, k)
	return p.response(ordertest.Confirm, i, err)
}

func (p changedIntents) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	i, err := p.Payments.Read(ctx, id)
	return p.response(ordertest.Read, i, err)
}

// wrongConfirms is a provider whose Confirm has no effect and returns the intent of
// another order.
type wrongConfirms struct{ order.Payments }

func (p wrongConfirms) Confirm(ctx context.Context, id order.IntentID, _ order.Key) (order.Intent, error) {
	i, err := p.Read(ctx, id)
	i.OrderID = "ORD-2"
	return i, err
}

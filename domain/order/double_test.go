package order_test

import (
	"context"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// changes is a provider that answers its first calls of one kind with another intent than
// it holds.
type changes struct {
	order.Payments

	on     ordertest.Call
	times  int
	change func(i *order.Intent)
	left   *int
}

func (p changes) fresh() changes {
	p.left = new(p.times)
	return p
}

func (p changes) answer(c ordertest.Call, i order.Intent, err error) (order.Intent, error) {
	if err == nil && c == p.on && *p.left > 0 {
		*p.left--
		p.change(&i)
	}
	return i, err
}

func (p changes) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	i, err := p.Payments.Prepare(ctx, o, k)
	return p.answer(ordertest.Prepare, i, err)
}

func (p changes) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	i, err := p.Payments.Confirm(ctx, id, k)
	return p.answer(ordertest.Confirm, i, err)
}

func (p changes) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	i, err := p.Payments.Read(ctx, id)
	return p.answer(ordertest.Read, i, err)
}

// confirmsAnother is a provider that answers Confirm about another order, and confirms
// nothing.
type confirmsAnother struct{ order.Payments }

func (p confirmsAnother) Confirm(ctx context.Context, id order.IntentID, _ order.Key) (order.Intent, error) {
	i, err := p.Read(ctx, id)
	i.OrderID = "ORD-2"
	return i, err
}

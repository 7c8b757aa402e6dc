package order_test

import (
	"context"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// changedIntents is a provider that changes the intents of its responses.
type changedIntents struct {
	order.Payments

	change func(c ordertest.Call, i *order.Intent)
}

// changeFirst changes the first n intents that one kind of call returns.
func changeFirst(n int, on ordertest.Call, change func(*order.Intent)) func(ordertest.Call, *order.Intent) {
	return func(c ordertest.Call, i *order.Intent) {
		if c == on && n > 0 {
			n--
			change(i)
		}
	}
}

func (p changedIntents) response(c ordertest.Call, i order.Intent, err error) (order.Intent, error) {
	if err == nil {
		p.change(c, &i)
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

// confirmsWithoutEffect is a provider whose Confirm only reads the intent.
type confirmsWithoutEffect struct{ order.Payments }

func (p confirmsWithoutEffect) Confirm(ctx context.Context, id order.IntentID, _ order.Key) (order.Intent, error) {
	return p.Read(ctx, id)
}

// finds is a provider whose search returns these intents.
type finds struct {
	order.Payments

	intents []order.Intent
}

func (p finds) Find(context.Context, order.ID) ([]order.Intent, error) { return p.intents, nil }

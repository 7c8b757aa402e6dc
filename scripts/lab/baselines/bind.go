package baselines

import "context"

// bindSteps charge an order in steps that may be repeated at any age: create an intent,
// write its id to the order's row unless the row has one, and confirm the intent of the
// row. Stripe charges an intent at most once, so the key only saves intents that are
// never confirmed. A row with a status is final. Another order with the same id is
// refused.
func bindSteps(ctx context.Context, e Env, o order) error {
	row, err := bind(ctx, e, o)
	if err != nil || row.Status != "" {
		return err
	}
	if row.Status, err = e.Stripe.confirm(ctx, o, row.Intent); err != nil {
		return err
	}
	_, err = e.Table.Put(ctx, row, Condition{Open: true}) // or it has been settled
	return err
}

// bind returns the order's row, which names an intent.
func bind(ctx context.Context, e Env, o order) (Item, error) {
	want := Item{ID: rowID(o.ID), Amount: o.amount(), Validation: contentOf(o)}
	row, err := e.Table.Get(ctx, want.ID)
	if err == nil && row.ID == "" {
		if want.Intent, err = e.Stripe.create(ctx, o, o.ID); err != nil {
			return Item{}, err
		}
		if row, err = e.Table.Put(ctx, want, Condition{New: true}); row.ID == "" {
			row = want
		}
	}
	if err == nil && row.Validation != want.Validation {
		err = errPayload
	}
	return row, err
}

package baselines

import "context"

// lookup has no single source: it is the usual repair for keys that expire. Before each attempt it looks for an intent of the order
// in Stripe's books, and charges in one call if there is none.
//
// It promises that whoever died after a charge is followed by one that finds it, at any age. It is enough if the list shows a
// charge before the next delivery comes, and no two deliveries of an order overlap: Stripe's list does not lag, its search
// does, by up to an hour. Between the look and the charge is nothing that a second worker could meet.
//
// With Stripe's key on top it held in all but one history, also over the late list: the key covers the first day, the list all
// that follows, and only a worker that stands still for a day between the look and the charge outlives both. What else is
// left: a failure that Stripe stores under the key, other content that is taken for done, and a list of all that a customer
// ever bought, which is read before each charge.
type lookup struct{ stripeKey bool }

func (l lookup) handle(ctx context.Context, e Env, m Message) error {
	o, err := orderOf(m)
	if err != nil {
		return err
	}
	p, found, err := e.Stripe.find(ctx, o)
	if err != nil {
		return err
	}
	if found {
		return save(ctx, e, o, p)
	}
	if l.stripeKey {
		return work(ctx, e, o, o.ID)
	}
	return work(ctx, e, o, "")
}

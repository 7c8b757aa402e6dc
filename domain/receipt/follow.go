package receipt

import (
	"context"
	"errors"

	"orderonce/domain/order"
)

var (
	errKnown = errors.New("the receipt shows the report already, or a later one")
	errLost  = errors.New("the table has no such receipt: restored from a backup, or deleted")
)

// Follow records what the provider reports about an e-mail: it resolves a doubt, and it
// turns a sent receipt into a delivered or a bounced one.
func (p *Processor) Follow(ctx context.Context, id order.ID, k Key, r Report) Result {
	seen, err := p.Store.Load(ctx, id, k)
	if err == nil && seen.Revision == 0 {
		return Result{Result: order.Result{Verdict: order.Park, Reason: ReasonLost, Err: errLost}}
	}
	if err == nil {
		err = p.follow(ctx, seen, r)
	}
	switch {
	case errors.Is(err, errKnown):
		return done(order.ReasonDuplicate, "")
	case err != nil:
		return failed(err)
	}
	return done(order.ReasonSettled, r.Status)
}

// follow writes a report into an item as seen, or as it is by now.
func (p *Processor) follow(ctx context.Context, seen Item, r Report) error {
	_, err := order.Change(ctx, p.Store, seen, func(i Item) (Item, error) {
		after, changed := Follow(i, r, p.Now())
		if !changed {
			return i, errKnown
		}
		return after, nil
	})
	return err
}

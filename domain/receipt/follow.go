package receipt

import (
	"context"
	"errors"
	"time"

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
	switch {
	case err != nil:
		return failed(err)
	case seen.Revision == 0:
		return Result{Result: order.Result{Verdict: order.Park, Reason: ReasonLost, Err: errLost}}
	}
	err = p.follow(ctx, seen, r)
	switch {
	case errors.Is(err, errKnown):
		return done(order.ReasonDuplicate, "")
	case err != nil:
		return failed(err)
	}
	return done(order.ReasonSettled, r.Status)
}

// followTries bounds how often an item may change between Load and Save.
const followTries = 3

// follow writes a report into an item as seen, or as it is by now.
func (p *Processor) follow(ctx context.Context, seen Item, r Report) (err error) {
	for range followTries {
		after, changed := Follow(seen, r, p.Now())
		if !changed {
			return errKnown
		}
		if err = p.Store.Save(ctx, seen, after); !errors.Is(err, order.ErrStale) {
			return err
		}
		var loadErr error
		if seen, loadErr = p.Store.Load(ctx, seen.OrderID, seen.Key); loadErr != nil {
			return loadErr
		}
	}
	return err
}

// Resolver lets a person resolve doubts.
type Resolver struct {
	Store Store
	Now   func() time.Time
}

// Resolve records a person's decision about the receipt that the person has seen, and
// returns the item. The error is a *NotDoubtfulError, order.ErrStale if the receipt
// changed since, or one of Store.
func (s Resolver) Resolve(ctx context.Context, seen Item, d Decision) (Item, error) {
	after, err := Resolve(seen, d, s.Now())
	if err != nil {
		return seen, err
	}
	return after, s.Store.Save(ctx, seen, after)
}

package order

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Waiting is the store's index of orders that wait: open past every lease, pending, or
// for the customer. ordertest.TestWaiting tests this contract.
type Waiting interface {
	// Due returns the orders whose recheck is due at the given time, page by page. The
	// index may lag behind the records, so an order may be missing, or be returned
	// although it does not wait any more. It ends at the first error.
	Due(ctx context.Context, at time.Time) iter.Seq2[ID, error]

	// Postpone moves the recheck of an order to due, or ends it if due is zero. It is
	// guarded by the status, the seq and the due time of r as loaded: it returns ErrStale
	// if they changed since. It changes nothing else.
	Postpone(ctx context.Context, r Record, due time.Time) error
}

// Reconciler looks at the orders that wait, and settles those that the provider has
// settled. It never moves money.
//
// The index is its cursor: an order that was looked at is due later, or never again, so
// the next run continues one that was killed. A disputed order waits for nothing and is
// not looked at: see DisputeFollower.
type Reconciler struct {
	Follower
	Waiting Waiting
	// Allow waits until the provider may be called once more, or the context ends.
	Allow    func(context.Context) error
	Parallel int // orders at once
	// Refunds looks at the refunds of a charged order, and moves no money. nil looks at
	// none.
	Refunds func(context.Context, ID) error
	// FreeGoods may cancel an order that holds goods and waits for its customer: see
	// Cancellation. It returns the record as it is afterwards. nil cancels none.
	FreeGoods func(context.Context, Record) (Record, error)
}

// HintFreed is what a run did with an order whose customer let its goods wait: FreeGoods
// canceled it. No webhook has this result.
const HintFreed Followed = "freed"

// Reconciled is what one run did.
type Reconciled struct {
	Followed    map[Followed]int         // orders, by what came of the look
	Unavailable int                      // orders for which the store or the provider failed; still due
	Mismatched  []Record                 // orders that disagree with the provider; a person must look
	NoIntent    []Record                 // open orders without an intent and a lease, whose message may be gone
	Oldest      map[Status]time.Duration // longest time since the last change of an order that still waits
	More        bool                     // the time was over before the last order
}

const (
	// minPostponed and maxPostponed bound the time between two looks at an order.
	minPostponed = 15 * time.Minute
	maxPostponed = 24 * time.Hour
	// maxUnavailable is after how many failed looks in a run the provider counts as down.
	maxUnavailable = 10
)

// Run looks at the due orders until none is left, or the time is over. It returns the
// first error of Due, or nil.
func (r *Reconciler) Run(ctx context.Context, until time.Time) (Reconciled, error) {
	run := reconciling{
		Reconciler: r, done: Reconciled{Followed: map[Followed]int{}, Oldest: map[Status]time.Duration{}},
	}
	var working sync.WaitGroup
	slots := make(chan struct{}, max(r.Parallel, 1))
	var err error
	for id, dueErr := range r.Waiting.Due(ctx, r.Now()) {
		if err = dueErr; err != nil {
			break
		}
		slots <- struct{}{} // first, because the wait for it may use up the time
		if !r.Now().Before(until) || run.down() || r.Allow(ctx) != nil {
			run.done.More = true
			break
		}
		working.Go(func() {
			defer func() { <-slots }()
			run.look(ctx, id)
		})
	}
	working.Wait()
	return run.done, err
}

// reconciling is one run.
type reconciling struct {
	*Reconciler

	mu      sync.Mutex
	done    Reconciled
	outages int // of done.Unavailable: not the order's own fault
}

// down reports whether so many looks failed that the rest waits for the next run.
func (r *reconciling) down() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outages >= maxUnavailable
}

// look looks at one order and postpones the next look if the order still waits.
func (r *reconciling) look(ctx context.Context, id ID) {
	followed, record, err := r.follow(ctx, Hint{OrderID: id})
	if err == nil && record.Status.Charged() && r.Refunds != nil {
		err = r.Refunds(ctx, id)
	}
	if err == nil && followed == HintUnchanged && r.FreeGoods != nil {
		followed, record, err = r.freeGoods(ctx, record)
	}
	now := r.Now()
	if err == nil && followed != HintSettled {
		err = r.postpone(ctx, record, now)
	}
	_, mismatch := errors.AsType[*MismatchError](err)
	_, transition := errors.AsType[*TransitionError](err)
	if mismatch || transition {
		_ = r.postpone(ctx, record, now) // the next run reports it again if this fails
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound): // another one settled or erased it
		return
	case mismatch || transition:
		r.done.Mismatched = append(r.done.Mismatched, record)
	case err != nil:
		r.done.Unavailable++
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownVersion) { // one row's fault
			r.outages++
		}
		return
	case followed == HintNoIntent:
		r.done.NoIntent = append(r.done.NoIntent, record)
	}
	if err == nil {
		r.done.Followed[followed]++
	}
	if _, waits := record.Status.RecheckAfter(); waits && followed != HintSettled && record.Status != Declined {
		r.done.Oldest[record.Status] = max(r.done.Oldest[record.Status], now.Sub(lastChange(record)))
	}
}

// freeGoods calls FreeGoods for an order about which the provider reports nothing new.
func (r *reconciling) freeGoods(ctx context.Context, seen Record) (Followed, Record, error) {
	record, err := r.FreeGoods(ctx, seen)
	switch {
	case err != nil:
		return "", seen, err
	case record.Status == Canceled:
		return HintFreed, record, nil
	case record.Status != seen.Status: // the customer was faster
		return HintSettled, record, nil
	}
	return HintUnchanged, record, nil
}

// postpone moves the next look away as far as the order has waited, between the status's
// own time and a day. A record that does not wait any more, neither for its charge nor
// for a refund, is left.
//
// A declined order gets one look, because the webhook of a customer who pays at the
// moment of the decline may meet the lease of the worker that records the decline.
// Webhooks report later payments. One that holds goods is looked at until FreeGoods
// cancels it.
func (r *reconciling) postpone(ctx context.Context, record Record, now time.Time) error {
	least, waits := record.Status.RecheckAfter()
	if !waits && record.DueAt.IsZero() {
		return nil
	}
	if record.Status == Declined && (len(record.Stock) == 0 || r.FreeGoods == nil) {
		return r.Waiting.Postpone(ctx, record, time.Time{})
	}
	after := min(max(now.Sub(lastChange(record)), least, minPostponed), maxPostponed)
	return r.Waiting.Postpone(ctx, record, now.Add(after))
}

// lastChange returns the time of the record's last transition, or of its first claim.
func lastChange(r Record) time.Time {
	if n := len(r.Events); n > 0 {
		return r.Events[n-1].At
	}
	return r.CreatedAt
}

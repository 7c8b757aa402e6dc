package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"orderonce/domain/order"
)

// Waiting is the store's index of orders that wait: open past every lease, pending, or
// for the customer. ordertest.TestDue tests this contract.
type Waiting interface {
	// Due returns the orders whose recheck is due at the given time, page by page. The
	// index may lag behind the records, so an order may be missing, or be returned
	// although it does not wait any more. It ends at the first error.
	Due(ctx context.Context, at time.Time) iter.Seq2[order.ID, error]
}

// Reconciler rechecks the orders that wait, and settles those that the provider has
// settled. It never moves money.
//
// The index is its cursor: an order that was rechecked is due later, or never again, so
// the next run continues one that was killed. A disputed order waits for nothing and is
// not rechecked. Refunds, of the Follower, rechecks those of charged orders.
type Reconciler struct {
	Follower
	Waiting  Waiting
	Parallel int // orders at once
	// CancelDeclined may cancel an order that holds stock and waits for its customer, see
	// order.Cancellation. It returns the record as it is afterwards. nil cancels none.
	CancelDeclined func(context.Context, order.Record) (order.Record, error)
}

// Paced is a provider of which the calls of a Reconciler and of a Cancellation wait for
// Allow. It returns nil when the provider may be called once more.
type Paced struct {
	order.Payments
	order.Canceler

	Allow func(context.Context) error
}

// Read implements order.Payments.
func (p Paced) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	if err := p.Allow(ctx); err != nil {
		return order.Intent{}, err
	}
	return p.Payments.Read(ctx, id)
}

// CancelIntent implements order.Canceler.
func (p Paced) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	if err := p.Allow(ctx); err != nil {
		return order.Intent{}, err
	}
	return p.Canceler.CancelIntent(ctx, id, k)
}

// HintFreed is what a run did with an order whose customer let its stock wait:
// CancelDeclined canceled it. No webhook has this result.
const HintFreed Followed = "freed"

// Reconciled is what one run did.
type Reconciled struct {
	Followed    map[Followed]int               // orders, by what came of the recheck
	Failed      []FailedRecheck                // orders with a fault of their own, such as a corrupt record
	Unavailable []FailedRecheck                // orders for which the store or the provider did not answer
	Mismatched  []order.Record                 // orders that disagree with the provider; a person must look
	NoIntent    []order.Record                 // open orders without intent and lease, whose message may be gone
	Oldest      map[order.Status]time.Duration // longest time since the last change of an order that still waits
	Overdue     time.Duration                  // longest time that an order was due before its recheck
	More        bool                           // the run ended before the last order
}

// FailedRecheck is a recheck that is repeated later.
type FailedRecheck struct {
	OrderID order.ID
	Err     error
}

const (
	// minPostponed and maxPostponed bound the time between two rechecks of an order.
	minPostponed = 15 * time.Minute
	maxPostponed = 24 * time.Hour
	// failedSooner is how much sooner a recheck that failed is repeated.
	failedSooner = 4
	// maxUnavailable is after how many unanswered rechecks in a row the run ends.
	maxUnavailable = 10
)

// Run rechecks the due orders until none is left, the time is over, or the provider or
// the store is down. It returns the first error of Due, and an error if they are down: no
// recheck was answered, or many in a row were not.
//
// An order whose recheck fails is due later, so that orders that always fail do not keep
// a run from the others. One that cannot be decoded stays due: it cannot be postponed,
// but costs no call of the provider.
func (r *Reconciler) Run(ctx context.Context, until time.Time) (Reconciled, error) {
	run := reconciling{
		Reconciler: r, done: Reconciled{Followed: map[Followed]int{}, Oldest: map[order.Status]time.Duration{}},
	}
	var working sync.WaitGroup
	slots := make(chan struct{}, max(r.Parallel, 1))
	var err error
	for id, dueErr := range r.Waiting.Due(ctx, r.Now()) {
		if err = dueErr; err != nil {
			break
		}
		slots <- struct{}{} // first, because the wait for it may use up the time
		if !r.Now().Before(until) || run.down() || ctx.Err() != nil {
			run.done.More = true
			break
		}
		working.Go(func() {
			defer func() { <-slots }()
			run.recheck(ctx, id)
		})
	}
	working.Wait()
	return run.done, cmp.Or(err, run.outage())
}

// reconciling is one run.
type reconciling struct {
	*Reconciler

	mu         sync.Mutex
	done       Reconciled
	answered   bool // a recheck got an answer of the store and the provider
	unanswered int  // rechecks in a row that got none
	gaveUp     bool // so many in a row got none that the rest waits for the next run
}

// down reports whether the run gave up. A late answer does not change that.
func (r *reconciling) down() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gaveUp
}

// outage returns an error if the store or the provider is down.
func (r *reconciling) outage() error {
	failed := r.done.Unavailable
	if n := len(failed); n > 0 && (r.down() || !r.answered) {
		return fmt.Errorf("%d orders: the store or the provider does not answer, order %s: %w",
			n, failed[n-1].OrderID, failed[n-1].Err)
	}
	return nil
}

// recheck follows the hint that an order is due, and postpones the next recheck if the
// order still waits.
func (r *reconciling) recheck(ctx context.Context, id order.ID) {
	followed, record, err := r.follow(ctx, Hint{OrderID: id})
	if err == nil && followed != HintForeign && record.Status.Charged() && r.Refunds != nil {
		_, err = r.Refunds(ctx, id)
	}
	if err == nil && followed == HintUnchanged && r.CancelDeclined != nil {
		followed, record, err = r.cancelDeclined(ctx, record)
	}
	now := r.Now()
	if err == nil && followed != HintSettled {
		err = r.postpone(ctx, followed, record, now)
	}
	if errors.Is(err, order.ErrStale) || errors.Is(err, order.ErrNotFound) || ctx.Err() != nil {
		return // another one settled or erased it, or the run was interrupted
	}
	stored := record.OrderID != "" // the store is up: it returned the record and postponed the recheck
	if err != nil && stored {
		again := r.recheckSooner(ctx, record, r.Now()) // the first write may have waited for long
		stored = again == nil || errors.Is(again, order.ErrStale)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !record.DueAt.IsZero() {
		r.done.Overdue = max(r.done.Overdue, now.Sub(record.DueAt))
	}
	_, waits := record.Status.RecheckAfter()
	if waits && followed != HintSettled && followed != HintForeign && record.Status != order.Declined {
		r.done.Oldest[record.Status] = max(r.done.Oldest[record.Status], now.Sub(record.LastChange()))
	}
	if err != nil {
		r.addFailed(record, FailedRecheck{id, err}, stored)
		return
	}
	r.done.Followed[followed]++
	switch followed { //nolint:exhaustive // the others asked nobody
	case HintNoIntent:
		r.done.NoIntent = append(r.done.NoIntent, record)
	case HintUnchanged, HintSettled, HintFreed: // the provider was asked
		r.answered, r.unanswered = true, 0
	}
}

// addFailed adds a recheck that failed.
func (r *reconciling) addFailed(record order.Record, f FailedRecheck, stored bool) {
	_, mismatch := errors.AsType[*order.MismatchError](f.Err)
	_, transition := errors.AsType[*order.TransitionError](f.Err)
	kind := order.KindOf(f.Err)
	unreadable := errors.Is(f.Err, order.ErrCorrupt) || errors.Is(f.Err, order.ErrUnknownVersion)
	switch {
	case mismatch || transition:
		r.done.Mismatched = append(r.done.Mismatched, record)
	case kind == order.KindUnknown: // an answer about this order may be what is wrong
		r.done.Unavailable = append(r.done.Unavailable, f)
		return
	case kind == order.KindUnavailable || kind == "" && !stored && !unreadable:
		r.done.Unavailable = append(r.done.Unavailable, f)
		r.unanswered++
		r.gaveUp = r.gaveUp || r.unanswered >= maxUnavailable
		return
	default:
		r.done.Failed = append(r.done.Failed, f)
	}
	if !unreadable {
		r.answered, r.unanswered = true, 0
	}
}

// cancelDeclined cancels an order about which the provider reports nothing new.
func (r *reconciling) cancelDeclined(
	ctx context.Context, seen order.Record,
) (Followed, order.Record, error) {
	record, err := r.CancelDeclined(ctx, seen)
	switch {
	case err != nil:
		return "", seen, err
	case record.Status == order.Canceled:
		return HintFreed, record, nil
	case record.Status != seen.Status: // the customer was faster
		return HintSettled, record, nil
	}
	return HintUnchanged, record, nil
}

// postpone moves the next recheck away as far as the order has waited, between the
// status's own time and a day. A record that does not wait any more is left.
//
// A declined order gets one recheck, because the webhook of a customer who pays at the
// moment of the decline may meet the lease of the worker that records the decline.
// Webhooks report later payments. One that holds stock is rechecked until CancelDeclined
// cancels it.
func (r *reconciling) postpone(
	ctx context.Context, followed Followed, record order.Record, now time.Time,
) error {
	least, _ := record.RecheckAfter()
	switch {
	case atRest(record):
		return nil
	case followed == HintForeign: // nobody looked at it
		return r.recheckSooner(ctx, record, now)
	case record.Status == order.Declined && len(record.Stock) == 0:
		return Postpone(ctx, r.Store, record, time.Time{})
	}
	after := min(max(now.Sub(record.LastChange()), least, minPostponed), maxPostponed)
	return Postpone(ctx, r.Store, record, now.Add(after))
}

// recheckSooner postpones a recheck that failed. It never ends the rechecks, and repeats
// them sooner than postpone does.
func (r *reconciling) recheckSooner(ctx context.Context, record order.Record, now time.Time) error {
	if atRest(record) {
		return nil // another one settled it since it was due
	}
	after := min(max(now.Sub(record.LastChange()), minPostponed*failedSooner), maxPostponed) / failedSooner
	return Postpone(ctx, r.Store, record, now.Add(after))
}

// atRest reports whether the record waits neither for its charge nor for a refund.
func atRest(r order.Record) bool {
	_, waits := r.RecheckAfter()
	return !waits && r.DueAt.IsZero()
}

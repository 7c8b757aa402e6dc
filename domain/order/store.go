package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps records. It decides nothing: a transition is a pure function of a record,
// and Save writes what that function returned. ordertest.TestStore tests this contract.
type Store interface {
	// Load returns the record with its events, strongly consistent. It returns
	// ErrNotFound if there is no record, with the id and the events that are left,
	// ErrUnknownVersion for a status that this release does not know, and ErrCorrupt for
	// an invalid record.
	Load(ctx context.Context, id ID) (Record, error)

	// Save writes after in place of before, with the events that before does not have and
	// the effect on the stock, whole or not at all. A record without a status is missing.
	// It returns the record as it is afterwards, without its events.
	//
	// It returns ErrStale and the record that is there, if that differs from before in
	// status, seq, owner, intent, attempt, lease, stock or the note of Park, or in anything
	// that after changes, but for UpdatedAt and Trace. It returns nil if the record is after already,
	// because the answer to an earlier try was lost. It returns *ShortError for goods that
	// are not in stock. After any other error the write may or may not have happened.
	Save(ctx context.Context, before, after Record) (Record, error)
}

// ShortError reports goods that cannot be reserved.
type ShortError struct {
	SKU      string
	Unlisted bool // the store has no such article
}

// Error names the article.
func (e *ShortError) Error() string { return "out of stock: " + e.SKU }

// Transitions writes the transitions of records to a store. It implements Claims, Records
// and DisputeRecords, and Postpone of Waiting.
type Transitions struct {
	Store       Store
	TracksStock bool // Begin reserves the goods of the order
}

var (
	_ Claims         = Transitions{}
	_ Records        = Transitions{}
	_ DisputeRecords = Transitions{}
)

// errUnchanged is the result of a transition that has nothing to write.
var errUnchanged = errors.New("the record shows it already")

// maxSaves is how often a change starts again on a record that another writer changed. An
// order has few writers: its worker, a webhook, an operator.
const maxSaves = 5

// change saves what a transition makes of the record. seen is the record as the caller
// knows it, so that a change costs one call: if it is stale, Save returns the record that
// is there, and the transition decides again. A decision not to write is made on a record
// that was read.
func (t Transitions) change(ctx context.Context, seen Record, read bool, do transition) (Record, error) {
	for range maxSaves {
		after, err := do(seen)
		switch {
		case err != nil && !read:
			id := seen.OrderID
			if seen, err = t.Store.Load(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
				return Record{}, err
			}
			seen.OrderID, seen.Events, read = id, nil, true
			continue
		case errors.Is(err, errUnchanged):
			return seen, nil
		case err != nil:
			return seen, err
		}
		now, err := t.Store.Save(ctx, seen, after)
		if err == nil {
			return now, nil
		}
		if !errors.Is(err, ErrStale) {
			return seen, err
		}
		now.OrderID = seen.OrderID
		seen, read = now, true
	}
	return seen, ErrStale
}

// Begin implements Claims. A new order and a duplicate cost one call, a takeover two, and
// an article that is short one more.
func (t Transitions) Begin(ctx context.Context, o Order, l Lease) (Claim, error) {
	var goods Goods
	var short *ShortError
	if t.TracksStock {
		if goods = o.Goods(); len(goods) > MaxArticles {
			goods, short = nil, &ShortError{SKU: TooManyArticles}
		}
	}
	r, err := t.change(ctx, Record{OrderID: o.ID()}, true, begin(o, l, goods))
	if errors.As(err, &short) {
		r, err = t.change(ctx, r, true, begin(o, l, nil))
	}
	if err != nil {
		return Claim{}, about("begin", o.ID(), err)
	}
	c := NewClaim(r, o, l)
	if short != nil && c.Stock == nil {
		c.Short, c.Unlisted = short.SKU, short.Unlisted
	}
	return c, nil
}

// Bind implements Claims.
func (t Transitions) Bind(ctx context.Context, c Claim, i Intent, at time.Time) error {
	_, err := t.change(ctx, c.seen(c.Intent), false, c.bind(i, at))
	return about("bind", c.Order.ID(), err)
}

// Finish implements Claims.
func (t Transitions) Finish(ctx context.Context, c Claim, o Outcome, at time.Time) error {
	err := Open.Transition(o.Status)
	if err == nil {
		_, err = t.change(ctx, c.seen(o.Intent), false, c.finish(o, at))
	}
	return about("finish", c.Order.ID(), err)
}

// Release implements Claims.
func (t Transitions) Release(ctx context.Context, c Claim, why Reason, at time.Time) error {
	_, err := t.change(ctx, c.seen(c.Intent), false, c.release(why, at))
	return about("release", c.Order.ID(), err)
}

// Load implements Records.
func (t Transitions) Load(ctx context.Context, id ID) (Record, error) {
	r, err := t.Store.Load(ctx, id)
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

// Settle implements Records.
func (t Transitions) Settle(ctx context.Context, r Record, o Outcome, at time.Time) error {
	_, err := t.change(ctx, r, false, settle(r, o, at))
	return about("settle", r.OrderID, err)
}

// Recreate implements Records.
func (t Transitions) Recreate(ctx context.Context, lost Record, at time.Time) error {
	there, err := t.Store.Load(ctx, lost.OrderID)
	if err == nil || errors.Is(err, ErrNotFound) {
		seq := 0
		for _, e := range there.Events {
			seq = max(seq, e.Seq)
		}
		there.OrderID, there.Events = lost.OrderID, nil
		_, err = t.change(ctx, there, true, recreate(lost, seq, at))
	}
	return about("recreate", lost.OrderID, err)
}

// Park implements Records.
func (t Transitions) Park(ctx context.Context, o Order, why Reason, at time.Time) error {
	_, err := t.change(ctx, Record{OrderID: o.ID()}, false, park(o, why, at))
	return about("park", o.ID(), err)
}

// RecordDispute implements DisputeRecords.
func (t Transitions) RecordDispute(ctx context.Context, r Record, d Dispute, at time.Time) error {
	_, err := t.change(ctx, r, false, dispute(r, d, at))
	return about("record dispute of", r.OrderID, err)
}

// Postpone implements Waiting.
func (t Transitions) Postpone(ctx context.Context, r Record, due time.Time) error {
	after := r
	after.DueAt = due
	_, err := t.Store.Save(ctx, r, after)
	return about("postpone", r.OrderID, err)
}

func about(verb string, id ID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s order %q: %w", verb, id, err)
}

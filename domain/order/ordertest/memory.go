package ordertest

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"

	"orderonce/domain/order"
)

var _ Store = (*Memory)(nil)

// Memory is a store in a map, and the specification of a store. The zero Memory is empty
// and ready, and does not track stock.
type Memory struct {
	mu    sync.Mutex
	rows  map[order.ID]order.Record
	stock map[string]order.Stock // nil: not tracked
}

// Begin claims the order.
func (m *Memory) Begin(_ context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.rows[o.ID()]
	if !known {
		r = order.Record{
			OrderID: o.ID(), CustomerID: o.CustomerID(), Total: o.Total(), Fingerprint: o.Fingerprint(),
			Status: order.Open, CreatedAt: l.From,
		}
	} else if err := checkClaim(r, o, l); err != nil {
		return order.Claim{}, err
	}
	again := r.Owner == l.Owner // a retry, because the response to the first call was lost
	if !again {
		if r.Status == order.Refused {
			r = order.Reopened(r, l)
		}
		r.CustomerID = o.CustomerID() // a recreated record has none
		r.Trace = cmp.Or(r.Trace, l.Trace)
		r.ParkedAt = time.Time{}
		r.Owner, r.Until, r.Attempt = l.Owner, l.Until, r.Attempt+1
	}
	held, short := m.reserve(r, o.Goods())
	if !again || len(held.Stock) > len(r.Stock) {
		m.put(held, l.From)
	}
	c := order.NewClaim(held, o, l)
	_, listed := m.stock[short]
	c.Short, c.Unlisted = short, short != "" && short != order.TooManyArticles && !listed
	return c, nil
}

// Bind records the intent.
func (m *Memory) Bind(_ context.Context, c order.Claim, i order.Intent, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, held := m.recordOf(c)
	if !held || r.Intent != "" && r.Intent != i.ID {
		return order.ErrClaimLost
	}
	r.Intent, r.Mode, r.Suspect = i.ID, i.Mode, ""
	m.put(r, at)
	return nil
}

// Finish settles or refuses the order.
func (m *Memory) Finish(_ context.Context, c order.Claim, o order.Outcome, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := order.Open.Transition(o.Status); err != nil {
		return err
	}
	r, held := m.recordOf(c)
	switch {
	case hasOutcome(m.rows[c.Order.ID()], o):
		return nil
	case !held || r.Intent != o.Intent || o.Intent == "" && !o.Status.MayLackIntent():
		return order.ErrClaimLost
	}
	m.put(m.applyStock(settled(r, o, at)), at)
	return nil
}

// Release ends the claim and records the reason.
func (m *Memory) Release(_ context.Context, c order.Claim, why order.Reason, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, held := m.recordOf(c)
	if !held {
		return order.ErrClaimLost
	}
	r.Owner, r.Until, r.LastError, r.Suspect = "", time.Time{}, string(why), cmp.Or(c.Suspect, r.Suspect)
	m.put(r, at)
	return nil
}

// Load returns the record with its events.
func (m *Memory) Load(_ context.Context, id order.ID) (order.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.rows[id]
	if !known {
		return order.Record{}, order.ErrNotFound
	}
	r.Events = slices.Clone(r.Events)
	return order.LoadRecord(r)
}

// Peek returns the record without copying or validating it, for a search that reads it
// after every step. Its events are the store's own: do not change them.
func (m *Memory) Peek(id order.ID) (r order.Record, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known = m.rows[id]
	return r, known
}

// Settle records an outcome that the provider reported later.
func (m *Memory) Settle(_ context.Context, seen order.Record, o order.Outcome, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[seen.OrderID]
	if hasOutcome(r, o) {
		return nil
	}
	if err := seen.Status.Transition(o.Status); err != nil {
		return err
	}
	if changed(seen, r) || r.Intent != o.Intent || o.Intent == "" && !o.Status.MayLackIntent() {
		return order.ErrStale
	}
	m.put(m.applyStock(settled(r, o, at)), at)
	return nil
}

// RecordDispute records a dispute.
func (m *Memory) RecordDispute(_ context.Context, seen order.Record, d order.Dispute, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[seen.OrderID]
	switch {
	case d.Is(r.Dispute):
		return nil
	case changed(seen, r):
		return order.ErrStale
	}
	r = order.Disputed(r, d, at)
	r.UpdatedAt = at
	m.rows[seen.OrderID] = r
	return nil
}

// Recreate writes a record that was lost.
func (m *Memory) Recreate(_ context.Context, lost order.Record, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.rows[lost.OrderID]
	if known {
		if err := order.CheckRestore(withoutEvents(r), lost, at); err != nil || r.Intent == lost.Intent {
			return err
		}
	} else {
		r = order.Record{
			OrderID: lost.OrderID, Total: lost.Total, Fingerprint: lost.Fingerprint, Status: order.Open,
			Attempt: 1, CreatedAt: at,
		}
	}
	r.Intent, r.Mode, r.Suspect, r.Owner, r.Until = lost.Intent, lost.Mode, "", "", time.Time{}
	m.put(r, at)
	return nil
}

// Park records that the order's message was moved to the dead-letter queue.
func (m *Memory) Park(_ context.Context, o order.Order, why order.Reason, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.rows[o.ID()]
	waits := r.Status == order.Open || r.Status == order.Refused
	if !known || !waits || r.Fingerprint != o.Fingerprint() {
		return nil
	}
	r.LastError, r.ParkedAt, r.UpdatedAt = string(why), at, at
	m.rows[o.ID()] = r
	return nil
}

// Delete deletes a record, as a restore from an older backup does.
func (m *Memory) Delete(id order.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rows, id)
}

// SetFingerprint overwrites the fingerprint of a record.
func (m *Memory) SetFingerprint(_ context.Context, id order.ID, f order.Fingerprint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.rows[id]
	if !known {
		return order.ErrNotFound
	}
	r.Fingerprint = f
	m.rows[id] = r
	return nil
}

// SetStatus overwrites the status of a record.
func (m *Memory) SetStatus(_ context.Context, id order.ID, s order.Status) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.rows[id]
	if !known {
		return order.ErrNotFound
	}
	r.Status = s
	m.rows[id] = r
	return nil
}

// Replace overwrites a record that still has the seq of seen, and reports whether it did.
func (m *Memory) Replace(seen, r order.Record) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows[seen.OrderID].Seq != seen.Seq {
		return false
	}
	m.rows[seen.OrderID] = r
	return true
}

// Clone returns an independent store with the same records.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Event slices and goods are shared, but never written to.
	return &Memory{rows: maps.Clone(m.rows), stock: maps.Clone(m.stock)}
}

// AppendState appends an encoding of all records. It is equal for equal stores, so that a
// search can merge states. Customer and total are omitted, because the fingerprint
// determines them.
func (m *Memory) AppendState(b []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.rows)) {
		r := m.rows[id]
		b = appendStrings(
			b, string(id), string(r.Fingerprint), string(r.Status), r.Owner, string(r.Intent), string(r.Mode),
			r.Failure, r.LastError, string(r.Suspect), string(r.Dispute.ID), string(r.Dispute.Status),
		)
		b = appendInts(
			b, int64(r.Attempt), int64(r.Seq), millis(r.Until), millis(r.CreatedAt), millis(r.UpdatedAt),
			millis(r.DueAt), millis(r.ParkedAt), millis(r.Dispute.CreatedAt),
		)
		b = appendGoods(b, r.Stock)
		for _, e := range r.Events { // their number is Seq
			b = appendStrings(b, string(e.From), string(e.To), string(e.Intent), e.Failure)
			b = appendStrings(b, string(e.Dispute.ID), string(e.Dispute.Status))
			b = appendInts(b, int64(e.Seq), millis(e.At))
		}
	}
	return m.appendStock(b)
}

func appendStrings(b []byte, parts ...string) []byte {
	for _, s := range parts {
		b = append(binary.AppendVarint(b, int64(len(s))), s...)
	}
	return b
}

func appendInts(b []byte, parts ...int64) []byte {
	for _, n := range parts {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// recordOf returns the claim's record. held is false if the claim was lost.
func (m *Memory) recordOf(c order.Claim) (r order.Record, held bool) {
	r, known := m.rows[c.Order.ID()]
	return r, known && r.Owner == c.Lease.Owner
}

// put stores r with its update and due times.
func (m *Memory) put(r order.Record, at time.Time) {
	r.UpdatedAt, r.DueAt = at, time.Time{}
	if after, waits := r.RecheckAfter(); waits {
		r.DueAt = at.Add(after)
	}
	if m.rows == nil {
		m.rows = map[order.ID]order.Record{}
	}
	m.rows[r.OrderID] = r
}

// settled returns r after the outcome: with one more event and without an owner.
func settled(r order.Record, o order.Outcome, at time.Time) order.Record {
	r.Seq++
	e := order.Event{Seq: r.Seq, From: r.Status, To: o.Status, Intent: o.Intent, Failure: o.Failure, At: at}
	r.Events = slices.Concat(r.Events, []order.Event{e})
	r.Status, r.Failure, r.Owner, r.Until, r.ParkedAt = o.Status, o.Failure, "", time.Time{}, time.Time{}
	return r
}

// changed reports whether a record has changed since it was loaded as seen.
func changed(seen, r order.Record) bool {
	return r.Status != seen.Status || r.Seq != seen.Seq || r.Intent != seen.Intent ||
		!maps.Equal(r.Stock, seen.Stock)
}

func hasOutcome(r order.Record, o order.Outcome) bool {
	return r.Status == o.Status && r.Intent == o.Intent
}

func checkClaim(r order.Record, o order.Order, l order.Lease) error {
	if _, err := order.LoadRecord(r); err != nil {
		return err
	}
	return order.CheckClaim(withoutEvents(r), o, l)
}

func withoutEvents(r order.Record) order.Record {
	r.Events = nil
	return r
}

package ordertest

import (
	"context"
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"orderonce/domain/order"
)

var _ order.Store = (*Memory)(nil)

// Memory is a store in a map, and the specification of a store. The zero Memory is empty
// and ready, and does not track stock.
type Memory struct {
	mu    sync.Mutex
	rows  map[order.ID]order.Record
	stock map[string]order.Stock // nil: not tracked
}

// Save writes after in place of before.
func (m *Memory) Save(_ context.Context, before, after order.Record) (order.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.rows[after.OrderID]
	saved, stale := merge(now, before, after)
	if stale && now.Status != "" && reflect.DeepEqual(withoutEvents(now), withoutEvents(after)) {
		return withoutEvents(now), nil
	}
	if stale {
		_, err := order.LoadRecord(now)
		if err == nil || now.Status == "" {
			err = order.ErrStale
		}
		return withoutEvents(now), err
	}
	if err := m.moveStock(before, after); err != nil {
		return order.Record{}, err
	}
	for _, e := range after.Events {
		if e.Seq > before.Seq {
			saved.Events = append(slices.Clip(saved.Events), e)
		}
	}
	if m.rows == nil {
		m.rows = map[order.ID]order.Record{}
	}
	m.rows[after.OrderID] = saved
	return withoutEvents(saved), nil
}

// merge writes into now what after changes of before. stale reports whether now differs
// from before in one of these fields, or in the guard of every write.
func merge(now, before, after order.Record) (saved order.Record, stale bool) {
	stale = now.Status != before.Status || now.Seq != before.Seq || now.Owner != before.Owner ||
		now.Intent != before.Intent || now.Attempt != before.Attempt || !now.Until.Equal(before.Until) ||
		!maps.Equal(now.Stock, before.Stock) || !now.ParkedAt.Equal(before.ParkedAt)
	now.OrderID, now.Status, now.Seq, now.Owner = after.OrderID, after.Status, after.Seq, after.Owner
	now.Intent, now.Attempt, now.Until, now.Stock = after.Intent, after.Attempt, after.Until, after.Stock
	now.ParkedAt = after.ParkedAt
	_, _ = Set(&now.UpdatedAt, before.UpdatedAt, after.UpdatedAt), Set(&now.Trace, before.Trace, after.Trace)
	for _, lost := range [...]bool{
		Set(&now.CustomerID, before.CustomerID, after.CustomerID), Set(&now.Total, before.Total, after.Total),
		Set(&now.Fingerprint, before.Fingerprint, after.Fingerprint), Set(&now.Mode, before.Mode, after.Mode),
		Set(&now.Suspect, before.Suspect, after.Suspect), Set(&now.Failure, before.Failure, after.Failure),
		Set(&now.LastError, before.LastError, after.LastError), Set(&now.Dispute, before.Dispute, after.Dispute),
		Set(&now.DueAt, before.DueAt, after.DueAt), Set(&now.CreatedAt, before.CreatedAt, after.CreatedAt),
	} {
		stale = stale || lost
	}
	return now, stale
}

// Set writes a field that changed, and reports whether that would overwrite the change of
// another writer.
func Set[T comparable](now *T, before, after T) (lost bool) {
	if before == after {
		return false
	}
	lost = *now != before
	*now = after
	return lost
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

// Delete deletes a record, as a restore from an older backup does.
func (m *Memory) Delete(id order.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rows, id)
}

// SetFingerprint overwrites the fingerprint of a record.
func (m *Memory) SetFingerprint(_ context.Context, id order.ID, f order.Fingerprint) error {
	return m.edit(id, func(r *order.Record) { r.Fingerprint = f })
}

// SetStatus overwrites the status of a record.
func (m *Memory) SetStatus(_ context.Context, id order.ID, s order.Status) error {
	return m.edit(id, func(r *order.Record) { r.Status = s })
}

func (m *Memory) edit(id order.ID, change func(*order.Record)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.rows[id]
	if !known {
		return order.ErrNotFound
	}
	change(&r)
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
	// Event slices and stock is shared, but never written to.
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
		b = appendStock(b, r.Stock)
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

func withoutEvents(r order.Record) order.Record {
	r.Events = nil
	return r
}

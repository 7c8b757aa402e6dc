package ordertest

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/settle"
)

var _ order.Store = (*Memory)(nil)

var _ settle.Waiting = (*Memory)(nil)

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
		!now.ParkedAt.Equal(before.ParkedAt) ||
		!maps.Equal(now.Stock, before.Stock)
	now.OrderID, now.Status, now.Seq, now.Owner = after.OrderID, after.Status, after.Seq, after.Owner
	now.Intent, now.Attempt, now.Until, now.Stock = after.Intent, after.Attempt, after.Until, after.Stock
	now.ParkedAt = after.ParkedAt
	_ = Set(&now.UpdatedAt, before.UpdatedAt, after.UpdatedAt)
	_ = Set(&now.Trace, before.Trace, after.Trace)
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

// Edit changes a record that exists, as a person or a newer release would.
func (m *Memory) Edit(id order.ID, change func(*order.Record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[id]
	change(&r)
	m.rows[id] = r
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
		for _, sku := range r.Stock.SKUs() {
			b = appendInts(appendStrings(b, sku), r.Stock[sku])
		}
		for _, e := range r.Events { // their number is Seq
			b = appendStrings(b, string(e.From), string(e.To), string(e.Intent), e.Failure)
			b = appendStrings(b, string(e.Dispute.ID), string(e.Dispute.Status))
			b = appendInts(b, int64(e.Seq), millis(e.At))
		}
	}
	for _, sku := range slices.Sorted(maps.Keys(m.stock)) {
		s := m.stock[sku]
		b = appendInts(appendStrings(b, sku), s.Available, s.Reserved, s.Sold)
	}
	return b
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

// Due returns the orders that are due, the longest first.
func (m *Memory) Due(_ context.Context, at time.Time) iter.Seq2[order.ID, error] {
	m.mu.Lock()
	var due []order.Record
	for _, r := range m.rows {
		if !r.DueAt.IsZero() && !r.DueAt.After(at) {
			due = append(due, r)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(due, func(a, b order.Record) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.OrderID, b.OrderID))
	})
	return func(yield func(order.ID, error) bool) {
		for _, r := range due {
			if !yield(r.OrderID, nil) {
				return
			}
		}
	}
}

// NewMemoryWithStock returns an empty store that tracks stock.
func NewMemoryWithStock() *Memory { return &Memory{stock: map[string]order.Stock{}} }

// TracksStock reports whether the store tracks stock.
func (m *Memory) TracksStock() bool { return m.stock != nil }

// Stock returns the stock of a SKU, or order.ErrNotFound.
func (m *Memory) Stock(_ context.Context, sku string) (order.Stock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.stock[sku]
	if !known {
		return order.Stock{}, order.ErrNotFound
	}
	return s, nil
}

// PeekStock returns the stock of a SKU, for a search that reads it after every step.
func (m *Memory) PeekStock(sku string) order.Stock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stock[sku]
}

// AddStock adds n units of a SKU.
func (m *Memory) AddStock(_ context.Context, sku string, n int64) (order.Stock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stock[sku]
	if s.SKU = sku; s.Available+n < 0 {
		return order.Stock{}, fmt.Errorf("add %d units of %q: %w", n, sku, order.ErrTooFewAvailable)
	}
	s.Available += n
	m.stock[sku] = s
	return s, nil
}

// moveStock makes the effect of a write on the stock: it reserves stock that the record
// did not hold, and sells or gives back what it held.
func (m *Memory) moveStock(before, after order.Record) error {
	quantities, effect := order.StockChange(&before, &after)
	for _, sku := range quantities.SKUs() {
		if s, listed := m.stock[sku]; effect == order.StockReserved && s.Available < quantities[sku] {
			return &order.ShortError{SKU: sku, Unlisted: !listed}
		}
	}
	for sku, n := range quantities {
		m.stock[sku] = stockAfter(m.stock[sku], effect, n)
	}
	return nil
}

func stockAfter(s order.Stock, e order.StockEffect, n int64) order.Stock {
	switch e {
	case order.StockSold:
		s.Reserved, s.Sold = s.Reserved-n, s.Sold+n
	case order.StockReleased:
		s.Reserved, s.Available = s.Reserved-n, s.Available+n
	case order.StockReserved:
		s.Available, s.Reserved = s.Available-n, s.Reserved+n
	case order.StockKept:
	}
	return s
}

package ordertest

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"orderonce/domain/order"
)

var _ order.Waiting = (*Memory)(nil)

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

// Postpone moves the recheck of an order.
func (m *Memory) Postpone(_ context.Context, r order.Record, due time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, known := m.rows[r.OrderID]
	if !known || now.Status != r.Status || now.Seq != r.Seq || !now.DueAt.Equal(r.DueAt) {
		return order.ErrStale
	}
	now.DueAt = due
	m.rows[r.OrderID] = now
	return nil
}

package ordertest

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/settle"
)

var _ settle.Waiting = (*Memory)(nil)

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

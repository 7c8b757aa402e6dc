// Package receipttest has the contract suite of package receipt's store, a store in
// memory that passes it, and doubles of the e-mail service and of the payers.
package receipttest

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

var (
	_ receipt.Store  = (*Memory)(nil)
	_ receipt.Doubts = (*Memory)(nil)
)

// Memory keeps receipts in a map, and is the specification of a store. The zero value is
// ready to use.
type Memory struct {
	// Fault, if set, is called for each Save. If it returns an error, Save returns that
	// error; the item is written nevertheless if lost is true.
	Fault func(before, after receipt.Item) (lost bool, err error)

	mu    sync.Mutex
	items map[name]receipt.Item
}

type name struct {
	id  order.ID
	key receipt.Key
}

// Load returns the item.
func (m *Memory) Load(_ context.Context, id order.ID, k receipt.Key) (receipt.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load(id, k), nil
}

func (m *Memory) load(id order.ID, k receipt.Key) receipt.Item {
	if i, found := m.items[name{id, k}]; found {
		return i
	}
	return receipt.Item{OrderID: id, Key: k}
}

// Save writes after in place of before.
func (m *Memory) Save(_ context.Context, before, after receipt.Item) (receipt.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.load(after.OrderID, after.Key)
	var fault error
	if m.Fault != nil {
		lost, err := m.Fault(before, after)
		if err != nil && !lost {
			return now, err
		}
		fault = err
	}
	if now != after && now.Revision != before.Revision {
		return now, order.ErrStale
	}
	if m.items == nil {
		m.items = map[name]receipt.Item{}
	}
	m.items[name{after.OrderID, after.Key}] = after
	return after, fault
}

// Doubtful returns the doubtful receipts, sorted.
func (m *Memory) Doubtful(context.Context) iter.Seq2[receipt.Item, error] {
	doubtful := m.all(func(i receipt.Item) bool { return i.Status == receipt.Doubtful })
	return func(yield func(receipt.Item, error) bool) {
		for _, i := range doubtful {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// OfOrder returns the receipts of an order, sorted by key.
func (m *Memory) OfOrder(_ context.Context, id order.ID) ([]receipt.Item, error) {
	return m.all(func(i receipt.Item) bool { return i.OrderID == id }), nil
}

func (m *Memory) all(keep func(receipt.Item) bool) (found []receipt.Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.items {
		if keep(i) {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b receipt.Item) int {
		return cmp.Or(cmp.Compare(a.OrderID, b.OrderID), cmp.Compare(a.Key, b.Key))
	})
	return found
}

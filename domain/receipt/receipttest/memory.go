// Package receipttest has the contract suite of package receipt's store, a store in
// memory that passes it, and doubles of the e-mail service and of the payers.
package receipttest

import (
	"context"
	"sync"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

var _ receipt.Store = (*Memory)(nil)

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

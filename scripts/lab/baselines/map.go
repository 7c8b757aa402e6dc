package baselines

import (
	"context"
	"maps"
	"sync"
	"time"
)

var _ Table = (*Map)(nil)

// Map is a Table in memory. The zero value is empty. It is safe for concurrent use.
type Map struct {
	mu    sync.Mutex
	items map[string]Item
}

// Get implements Table. It is strongly consistent.
func (m *Map) Get(_ context.Context, id string) (Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.items[id]), nil
}

// Put implements Table.
func (m *Map) Put(_ context.Context, item Item) error {
	return m.put(item, func(Item) bool { return true })
}

// PutIf implements Table.
func (m *Map) PutIf(_ context.Context, item Item, c Condition) error { return m.put(item, c.holds) }

func (m *Map) put(item Item, holds func(old Item) bool) error {
	id := item.id()
	if id == "" {
		return errNoID
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.items[id]; !holds(old) {
		return &ConditionFailedError{maps.Clone(old)}
	}
	if m.items == nil {
		m.items = map[string]Item{}
	}
	m.items[id] = maps.Clone(item)
	return nil
}

// Delete implements Table.
func (m *Map) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.items, id)
	return nil
}

// Expire deletes every item whose time to live has passed. Until then they stay readable,
// because DynamoDB may delete them days late. A search must cover both cases.
func (m *Map) Expire(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.items, func(_ string, i Item) bool { return i.expired(now) })
}

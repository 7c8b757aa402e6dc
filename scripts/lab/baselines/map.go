package baselines

import (
	"context"
	"maps"
	"sync"
	"time"
)

var _ Table = (*Map)(nil)

// Map is a Table in memory. Its zero value is empty, and it is safe for concurrent use.
type Map struct {
	mu    sync.Mutex
	items map[string]Item
}

// Get implements Table. What was written last is read.
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
func (m *Map) PutIf(_ context.Context, item Item, c Condition) error { return m.put(item, c.Holds) }

func (m *Map) put(item Item, may func(old Item) bool) error {
	id := item.id()
	if id == "" {
		return errNoID
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.items[id]; !may(old) {
		return &RefusedError{maps.Clone(old)}
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

// Expire deletes every item whose time to live is over. Until somebody calls it they stay readable: DynamoDB deletes late,
// by up to days, so a search has to visit both.
func (m *Map) Expire(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.items, func(_ string, i Item) bool { return Less(Expiration, N(now.Unix())).Holds(i) })
}

// Clone returns an independent copy.
func (m *Map) Clone() *Map {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Map{items: maps.Clone(m.items)} // items are replaced, never changed
}

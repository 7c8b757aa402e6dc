package ordertest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"orderonce/domain/order"
)

// NewMemoryWithStock returns an empty store that tracks stock.
func NewMemoryWithStock() *Memory { return &Memory{stock: map[string]order.Stock{}} }

// TracksStock reports whether the store tracks stock.
func (m *Memory) TracksStock() bool { return m.stock != nil }

// Stock returns the stock of an article, or order.ErrNotFound.
func (m *Memory) Stock(_ context.Context, sku string) (order.Stock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.stock[sku]
	if !known {
		return order.Stock{}, order.ErrNotFound
	}
	return s, nil
}

// PeekStock returns the stock of an article, for a search that reads it after every step.
func (m *Memory) PeekStock(sku string) order.Stock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stock[sku]
}

// AddStock adds n pieces of an article.
func (m *Memory) AddStock(_ context.Context, sku string, n int64) (order.Stock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stock[sku]
	if s.SKU = sku; s.Available+n < 0 {
		return order.Stock{}, fmt.Errorf("add %d pieces of %q: %w", n, sku, order.ErrTooFewAvailable)
	}
	s.Available += n
	m.stock[sku] = s
	return s, nil
}

// moveGoods makes the effect of a write on the stock: it reserves goods that the record
// did not hold, and sells or gives back those that it held.
func (m *Memory) moveGoods(before, after order.Record) error {
	goods, effect := order.StockChange(before, after)
	for _, sku := range goods.SKUs() {
		if s, listed := m.stock[sku]; effect == order.StockReserved && s.Available < goods[sku] {
			return &order.ShortError{SKU: sku, Unlisted: !listed}
		}
	}
	for sku, n := range goods {
		m.stock[sku] = m.stock[sku].After(effect, n)
	}
	return nil
}

// appendStock appends an encoding of the stock, see AppendState.
func (m *Memory) appendStock(b []byte) []byte {
	for _, sku := range slices.Sorted(maps.Keys(m.stock)) {
		s := m.stock[sku]
		b = appendInts(appendStrings(b, sku), s.Available, s.Reserved, s.Sold)
	}
	return b
}

// appendGoods appends an encoding of the goods that a record holds.
func appendGoods(b []byte, g order.Goods) []byte {
	for _, sku := range g.SKUs() {
		b = appendInts(appendStrings(b, sku), g[sku])
	}
	return b
}

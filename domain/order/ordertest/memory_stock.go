package ordertest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"orderonce/domain/order"
)

var _ StockStore = (*Memory)(nil)

// NewMemoryWithStock returns an empty store that tracks stock.
func NewMemoryWithStock() *Memory { return &Memory{stock: map[string]order.Stock{}} }

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

// reserve reserves the goods of an open order that holds none. It returns the article
// that is short, if one is.
func (m *Memory) reserve(r order.Record, goods order.Goods) (held order.Record, short string) {
	if m.stock == nil || r.Stock != nil {
		return r, ""
	}
	if len(goods) > order.MaxArticles {
		return r, order.TooManyArticles
	}
	for _, sku := range goods.SKUs() {
		if m.stock[sku].Available < goods[sku] {
			return r, sku
		}
	}
	for sku, n := range goods {
		s := m.stock[sku]
		s.Available, s.Reserved = s.Available-n, s.Reserved+n
		m.stock[sku] = s
	}
	r.Stock = goods
	return r, ""
}

// applyStock applies the effect of a transition to the goods that the record holds.
func (m *Memory) applyStock(r order.Record) order.Record {
	effect := order.StockEffectOf(r.Status, r.Intent)
	if effect == order.StockKept {
		return r
	}
	for sku, n := range r.Stock {
		m.stock[sku] = m.stock[sku].After(effect, n)
	}
	r.Stock = nil
	return r
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

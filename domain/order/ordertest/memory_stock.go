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

// appendStock appends an encoding of the stock that a record holds.
func appendStock(b []byte, g order.Quantities) []byte {
	for _, sku := range g.SKUs() {
		b = appendInts(appendStrings(b, sku), g[sku])
	}
	return b
}

package ordertest

import (
	"testing"

	"orderonce/domain/order"
)

// Promise is one sentence of a contract. Test reports to tb alone, so that a test of the
// suite can observe the failures.
type Promise[T any] struct {
	Name string
	Test func(tb testing.TB, subject T)
}

// StorePromises returns the promises that TestStore tests.
func StorePromises() (all []Promise[Store]) {
	for _, p := range storePromises() {
		all = append(all, Promise[Store]{p.name, func(tb testing.TB, s Store) {
			tb.Helper()
			p.test(newStoreTest(tb, s))
		}})
	}
	return all
}

// StockPromises returns the promises that TestStock tests.
func StockPromises() (all []Promise[StockStore]) {
	for _, p := range stockPromises() {
		all = append(all, Promise[StockStore]{p.name, func(tb testing.TB, s StockStore) {
			tb.Helper()
			p.test(newStockTest(tb, s))
		}})
	}
	return all
}

// EditStock changes the stock of an article without a call to the port.
func (m *Memory) EditStock(sku string, change func(s *order.Stock)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stock[sku]
	change(&s)
	m.stock[sku] = s
}

// PaymentPromises returns the promises that TestPayments tests.
func PaymentPromises() (all []Promise[PaymentsUnderTest]) {
	for _, p := range paymentPromises() {
		all = append(all, Promise[PaymentsUnderTest]{p.name, func(tb testing.TB, u PaymentsUnderTest) {
			tb.Helper()
			p.test(newPaymentsTest(tb, u))
		}})
	}
	return all
}

// DisputePromises returns the promises that TestDisputes tests.
func DisputePromises() (all []Promise[DisputesUnderTest]) {
	for _, p := range providerDisputePromises() {
		all = append(all, Promise[DisputesUnderTest]{p.name, func(tb testing.TB, u DisputesUnderTest) {
			tb.Helper()
			p.test(newDisputesTest(tb, u))
		}})
	}
	return all
}

// Row returns the record in the store, not a copy.
func (m *Memory) Row(id order.ID) order.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows[id]
}

// Edit changes a record without a call to the port.
func (m *Memory) Edit(id order.ID, change func(r *order.Record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, known := m.rows[id]; known {
		change(&r)
		m.rows[id] = r
	}
}

// Edit changes an intent without a call to the port.
func (b *Bank) Edit(id order.IntentID, change func(i *order.Intent)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a, known := b.intents[id]; known {
		change(&a.Intent)
	}
}

// BusPromises returns the promises that TestBus tests.
func BusPromises() (all []Promise[BusUnderTest]) {
	for _, p := range busPromises() {
		all = append(all, Promise[BusUnderTest]{p.name, func(tb testing.TB, u BusUnderTest) {
			tb.Helper()
			p.test(busTest{tb, u})
		}})
	}
	return all
}

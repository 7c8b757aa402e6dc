package ordertest

import (
	"testing"

	"orderonce/domain/order"
)

// Promise is one sentence of a contract, for a test of the suite itself: Keep tells tb
// alone.
type Promise[T any] struct {
	Says string
	Keep func(tb testing.TB, kept T)
}

// StorePromises is what TestStore holds a store to.
func StorePromises() (all []Promise[Store]) {
	for _, p := range storePromises() {
		all = append(
			all,
			Promise[Store]{p.says, func(tb testing.TB, s Store) { tb.Helper(); p.keep(newTrial(tb, s)) }},
		)
	}
	return all
}

// PaymentPromises is what TestPayments holds a provider to.
func PaymentPromises() (all []Promise[PaymentsUnderTest]) {
	for _, p := range paymentPromises() {
		all = append(
			all,
			Promise[PaymentsUnderTest]{
				p.says,
				func(tb testing.TB, u PaymentsUnderTest) { tb.Helper(); p.keep(newSale(tb, u)) },
			},
		)
	}
	return all
}

// Row is a record as it stands in the store, not a copy.
func (m *Memory) Row(id order.ID) order.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows[id]
}

// Edit changes a record behind the port's back.
func (m *Memory) Edit(id order.ID, change func(r *order.Record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, known := m.rows[id]; known {
		change(&r)
		m.rows[id] = r
	}
}

// Edit changes an intent behind the port's back.
func (b *Bank) Edit(id order.IntentID, change func(i *order.Intent)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a, known := b.intents[id]; known {
		change(&a.Intent)
	}
}

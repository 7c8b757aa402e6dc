// Package ordertest tests implementations of package order's ports, and provides the
// smallest correct ones.
//
// TestStore and TestSaves test the contract of order.Store, TestPayments that of
// order.Payments, TestBus that of outbox.Bus. Memory, Bank and Bus are a store, a payment
// provider and an event bus in memory: read them as specifications. Intercepted passes
// each call to a port through a function that may fail it. The package knows nothing of
// tables, HTTP or clocks: every time is an argument. TestCosts tests allocations.
package ordertest

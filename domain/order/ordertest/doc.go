// Package ordertest tests implementations of package order's ports, and provides the
// smallest correct ones.
//
// TestStore and TestSaves test the contract of order.Store, and TestPayments that of
// order.Payments. TestBus tests that of outbox.Bus. Memory and Bank are a store and a
// payment provider in memory: read them as specifications. So is Bus, an event bus.
// Intercepted passes each call to a port through a function that may fail it. The package
// knows nothing of tables, HTTP or clocks: every time is an argument. TestCosts tests
// allocations.
package ordertest

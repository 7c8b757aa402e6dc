// Package ordertest is the promises of package order's ports as tests, and the smallest
// implementations that keep them.
//
// TestStore holds any order.Claims and order.Records to their contract, TestPayments any
// order.Payments. Memory and Bank are a store and a payment provider in a map: read them
// as specifications. The doubles in double.go are named by what they do to a call. It
// knows nothing of tables, HTTP or clocks: every time is an argument.
package ordertest

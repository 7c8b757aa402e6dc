package system

import "orderonce/scripts/invariants"

// Add adds an item to an order, as Orders does.
func Add(o *invariants.Order, item Item) error { return add(o, item) }

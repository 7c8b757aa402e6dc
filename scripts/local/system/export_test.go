package system

import "orderonce/domain/order"

// Add is what a scan does with each item.
func Add(r *order.Record, item Item) error { return add(r, item) }

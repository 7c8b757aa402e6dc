package system

import "orderonce/domain/order"

// Add adds an item to a record, as Records does.
func Add(r *order.Record, item Item) error { return add(r, item) }

package system

// Add adds an item to an order, as Orders does.
func Add(o *Order, item Item) error { return add(o, item) }

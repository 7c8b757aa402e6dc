package refundtest_test

import (
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund/refundtest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	refundtest.TestStore(t, func(*testing.T) (order.Claims, refundtest.Store) {
		orders := new(ordertest.Memory)
		return orders, refundtest.NewMemory(orders)
	})
}

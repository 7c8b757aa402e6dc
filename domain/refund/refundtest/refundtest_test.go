package refundtest_test

import (
	"testing"

	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund/refundtest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	refundtest.TestStore(t, func(*testing.T) (ordertest.Store, refundtest.Store) {
		orders := new(ordertest.Memory)
		return orders, refundtest.NewMemory(orders)
	})
}

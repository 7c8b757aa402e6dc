package refundtest_test

import (
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

func TestMemory(t *testing.T) {
	refundtest.TestStore(t, func(*testing.T) (order.Store, refund.Store) {
		orders := new(ordertest.Memory)
		return orders, refundtest.NewMemory(orders)
	})
}

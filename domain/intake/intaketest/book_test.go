package intaketest_test

import (
	"testing"

	"orderonce/domain/intake"
	"orderonce/domain/intake/intaketest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestMemory(t *testing.T) {
	intaketest.TestBook(t, func(*testing.T) (order.Store, intake.Book) {
		orders := new(ordertest.Memory)
		return orders, &intaketest.Memory{Orders: orders}
	})
}

package receipttest_test

import (
	"testing"

	"orderonce/domain/receipt"
	"orderonce/domain/receipt/receipttest"
)

func TestMemory(t *testing.T) {
	receipttest.TestStore(t, func(*testing.T) receipt.Store { return new(receipttest.Memory) })
}

package receipttest_test

import (
	"testing"

	"orderonce/domain/receipt/receipttest"
)

func TestMemory(t *testing.T) {
	receipttest.TestStore(t, func(*testing.T) receipttest.Store { return new(receipttest.Memory) })
}

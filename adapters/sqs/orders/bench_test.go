package orders_test

import (
	"fmt"
	"strings"
	"testing"

	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order/ordertest"
)

// bodyOf returns a good order of n lines.
func bodyOf(n int) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"sku":"TSHIRT-%03d","quantity":2,"unitAmount":1999}`, i)
	}
	return `{"orderId":"ORD12345","customerId":"CUST987","currency":"usd","lines":[` + strings.Join(lines, ",") +
		`],"payment":{"customer":"cus_NffrFeUfNV2Hib","method":"pm_1MqLiJLkdIwHu7ix"}}`
}

func costs() []ordertest.Cost {
	d := orders.NewDecoder()
	decode := func(lines int) func() error {
		body := bodyOf(lines)
		return func() error { _, err := d.Decode(body); return err }
	}
	return []ordertest.Cost{
		{Name: "lines=2", Objects: 105, Bytes: 9_800, Call: decode(2)},
		{Name: "lines=100", Objects: 1_876, Bytes: 55_100, Call: decode(100)},
	}
}

func TestDecodeKeepsItsBudget(t *testing.T) { ordertest.TestCosts(t, costs()) }
func BenchmarkDecode(b *testing.B)          { ordertest.BenchmarkCosts(b, costs()) }

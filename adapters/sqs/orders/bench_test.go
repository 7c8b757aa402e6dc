package orders_test

import (
	"fmt"
	"strings"
	"testing"

	"orderonce/adapters/sqs/orders"
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

func BenchmarkDecode(b *testing.B) {
	for _, lines := range []int{2, 100} {
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) {
			d, body := orders.NewDecoder(), bodyOf(lines)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package order_test

import (
	"strings"
	"testing"

	"orderonce/domain/order"
)

func TestQuoteWithholdsLongOrUnusualText(t *testing.T) {
	for s, want := range map[string]string{
		"":                                    `""`,
		"USD":                                 `"USD"`,
		".ORD-12_3":                           `".ORD-12_3"`,
		strings.Repeat("x", 32):               `"` + strings.Repeat("x", 32) + `"`,
		strings.Repeat("x", 33):               "[withheld: length 33]",
		"1234567":                             `"1234567"`,
		"1980-02-30":                          "[withheld: length 10, with 8 digits]",
		strings.Repeat("4", 33):               "[withheld: length 33, with 33 digits]",
		"jane.doe@example.com":                "[withheld: length 20, with '@']",
		"Jane Doe, 1 Main Street":             "[withheld: length 23, with ' ']",
		"J\u00fcrgen":                         "[withheld: length 6, with '\\u00fc']",
		"a\nb":                                "[withheld: length 3, with '\\n']",
		"a\xff":                               "[withheld: length 2, with '\\ufffd']",
		strings.Repeat("x", 80) + cardNumber:  "[withheld: length 96, with 16 digits]",
		strings.Repeat("a", 200) + "1234567":  "[withheld: length 207]", // so few digits are no reason
		strings.Repeat("a", 200) + "12345678": "[withheld: length 208, with 8 digits]",
		strings.Repeat("x ", 1<<20):           "[withheld: length 2097152, with ' ']",
	} {
		if got := order.Quote(s); got != want {
			t.Errorf("%.40q: got %s, want %s", s, got, want)
		}
		if got, want := order.Printable(s), want[0] == '"'; got != want {
			t.Errorf("%.40q: got printable %t, want %t", s, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0", -2500: "-2500", 9_999_999: "9999999", -19_800_230: "[withheld: 8 digits]", 1<<63 - 1: "[withheld: 19 digits]",
	} {
		if got := order.QuoteInt(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

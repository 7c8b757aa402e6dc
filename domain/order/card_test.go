package order_test

import (
	"testing"

	"orderonce/domain/order"
)

// The numbers are the networks' test cards.
func TestTheIDOfANewOrderIsNotACardNumber(t *testing.T) {
	for name, number := range map[string]string{
		"Visa": "4242424242424242", "Visa of 13 digits": "4222222222222", "Visa of 19 digits": "4000000000000000006",
		"Mastercard": "5555555555554444", "Mastercard, first": "5100000000000008", "Mastercard, 2 series": "2223003122003222",
		"Mastercard, 2 series, first": "2221000000000009", "Mastercard, 2 series, last": "2720999999999996",
		"American Express": "378282246310005", "American Express, 34": "340000000000009",
		"Diners Club": "30569309025904", "Diners Club, 300": "30000000000004", "Diners Club, 36": "36227206271667",
		"Diners Club, 38": "38520000023237",
		"Discover":        "6011111111111117", "Discover, 644": "6440000000000005", "Discover, 65": "6500000000000002",
		"JCB": "3566002020360505", "JCB, first": "3528000000000007", "JCB, last": "3589000000000003",
		"UnionPay": "6200000000000005", "UnionPay of 19 digits": "6205500000000000004",
		"grouped": "4242-4242-4242-4242", "grouped otherwise": "4242_42.42-4242.4242",
	} {
		if order.ValidNewID(number) {
			t.Errorf("%s: ValidNewID(%q) = true, want false", name, number)
		}
		if !order.ValidID(number) {
			t.Errorf("%s: ValidID(%q) = false: an order of an older release would be lost", name, number)
		}
	}
	for name, id := range map[string]string{
		"wrong check digit": "4242424242424241", "a text around it": "ORD-4242424242424242", "12 digits": "424242424242",
		"20 digits": "42424242424242424242", "UnionPay of 20 digits": "62055000000000000009", "a letter in it": "4242X24242424242",
		"Visa of 14 digits": "42424242424242", "milliseconds": "1790000000005",
		"a date and a number": "2026-1123-0000-0006", "between two ranges": "5600000000000003", "before the 2 series": "2220000000000000",
		"behind the 2 series": "2721000000000004", "JCB, too early": "3527000000000008", "JCB, too late": "3590000000000000",
		"Discover, too early": "6439000000000008", "Amex of 16 digits": "3400000000000000", "Diners Club, too late": "30600000000001",
	} {
		if !order.ValidNewID(id) {
			t.Errorf("%s: ValidNewID(%q) = false, want true", name, id)
		}
	}
	if order.ValidNewID("a b") || order.ValidNewID("") {
		t.Error("ValidNewID accepts what is no id")
	}
}

package order

import (
	"strconv"
	"strings"
)

// NewIDRule is the rule of ValidNewID in words, for error messages.
const NewIDRule = IDRule + ", and not a card number"

// ValidNewID reports whether s may become the id of a new order: it is a ValidID and not
// a card number, which rows, logs and events would hold for ever. An order with such an
// id may exist since an older release, so what is done about an order asks ValidID.
func ValidNewID(s string) bool { return ValidID(s) && !isCardNumber(s) }

// isCardNumber reports whether s is 13 to 19 digits, perhaps grouped by '-', '.' or '_',
// with the first digits of a card issuer, one of its lengths and the right check digit.
// The check digit alone would refuse a tenth of all long numeric ids.
//
// Source: ISO/IEC 7812-1, annex B, and the ranges that the card networks publish.
func isCardNumber(s string) bool {
	number := strings.NewReplacer("-", "", ".", "", "_", "").Replace(s)
	if digits(number) != len(number) || len(number) < 13 || len(number) > 19 {
		return false
	}
	return isIssued(number) && checkDigit(number)
}

// isIssued reports whether an issuer has numbers that start so and are as long.
func isIssued(number string) bool {
	first, _ := strconv.Atoi(number[:4])
	n := len(number)
	within := func(low, high int) bool { return low <= first && first <= high }
	switch {
	case within(4000, 4999): // Visa
		return n == 13 || n == 16 || n == 19
	case within(5100, 5599), within(2221, 2720): // Mastercard
		return n == 16
	case within(3400, 3499), within(3700, 3799): // American Express
		return n == 15
	case within(3000, 3059), within(3600, 3699), within(3800, 3899): // Diners Club
		return n == 14
	case within(6011, 6011), within(6440, 6599): // Discover
		return n >= 16
	case within(3528, 3589), within(6200, 6299): // JCB, UnionPay
		return n >= 16
	}
	return false
}

// checkDigit reports whether the last digit is that of the Luhn algorithm.
func checkDigit(number string) bool {
	sum := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum%10 == 0
}

package order

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Redaction limits. A date of birth, a phone number and a card number all have more
// digits.
const (
	maxQuoted = 32
	maxDigits = 7
)

// Printable reports whether untrusted text may appear in errors and logs: it is short,
// has few digits, and consists of letters, digits, '.', '_' and '-'. Producers put
// anything into any field; names, addresses, phone and card numbers mostly contain other
// characters or more digits.
func Printable(s string) bool {
	return len(s) <= maxQuoted && digits(s) <= maxDigits && every(s, isPlain)
}

// Quote returns untrusted text for an error message: the quoted text if it is Printable,
// otherwise a placeholder with its length and the reason.
func Quote(s string) string {
	if Printable(s) {
		return strconv.Quote(s)
	}
	why := ""
	if i := slices.IndexFunc([]byte(s), func(c byte) bool { return !isPlain(c) }); i >= 0 {
		strange, _ := utf8.DecodeRuneInString(s[i:])
		why = ", with " + strconv.QuoteRuneToASCII(strange)
	} else if n := digits(s); n > maxDigits {
		why = fmt.Sprintf(", with %d digits", n)
	}
	return fmt.Sprintf("[withheld: length %d%s]", utf8.RuneCountInString(s), why)
}

// QuoteInt returns an untrusted number for an error message: the number itself, or how
// many digits it has.
func QuoteInt(n int64) string {
	s := strconv.FormatInt(n, 10)
	if n := digits(s); n > maxDigits {
		return fmt.Sprintf("[withheld: %d digits]", n)
	}
	return s
}

func digits(s string) (n int) {
	for i := range len(s) {
		if '0' <= s[i] && s[i] <= '9' {
			n++
		}
	}
	return n
}

package order_test

import (
	"strings"
	"testing"

	"orderonce/domain/order"
)

// The rules of ids name ranges of letters and digits; each range includes its ends and
// nothing beside them.
func TestAnIDTakesTheFirstAndTheLastOfEveryRange(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"AZaz09": true, "A": true, "Z": true, "a": true, "z": true, "0": true, "9": true,
		"A@": false, "A[": false, "A`": false, "A{": false, "A/": false, "A:": false,
	} {
		if got := order.ValidID(id); got != want {
			t.Errorf("id %q: valid %v, want %v", id, got, want)
		}
	}
}

func TestAScopeTakesTheFirstAndTheLastLowerCaseLetter(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]bool{
		"a": true, "z": true, "az09-": true,
		"aA": false, "aZ": false, "`": false, "{": false, "a@": false, "a[": false, "0": false, "-": false,
	} {
		_, err := order.NewScope(scope)
		if got := err == nil; got != want {
			t.Errorf("scope %q: taken %v (%v), want %v", scope, got, err, want)
		}
	}
}

func TestAReferenceTakesTheFirstAndTheLastOfEveryRange(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]bool{
		"az_AZaz09": true, "a_1": true, "z_1": true,
		"`_1": false, "{_1": false, "A_1": false, "az_@": false, "az_[": false, "az_`": false, "az_{": false,
	} {
		if got := order.ValidReference(reference); got != want {
			t.Errorf("reference %q: valid %v, want %v", reference, got, want)
		}
	}
}

// A text is withheld for its length, for a character, or for digits that may be a card's
// number. The message gives a reason that holds.
func TestAWithheldTextNamesItsDigitsOnlyIfTheyAreTooMany(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 200)
	for digits, want := range map[string]bool{"1234567": false, "12345678": true} {
		got := order.Quote(long + digits)
		if strings.Contains(got, "digits") != want || !strings.HasPrefix(got, "[withheld: length ") {
			t.Errorf("%d digits in a long text: got %s, named %v, want %v", len(digits), got, !want, want)
		}
	}
}

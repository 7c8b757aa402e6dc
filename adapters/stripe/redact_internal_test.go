package stripe

import (
	"regexp"
	"testing"
)

// The expressions that idWord and isPublicID implement.
var (
	idExpression     = regexp.MustCompile(`[A-Za-z]+_[\w*.]*[\w*]`)
	publicExpression = regexp.MustCompile(`^((pi|req|acct)_[A-Za-z0-9]+|rak_[a-z_]+_(read|write))$`)
)

func FuzzIDsAreRecognizedAsTheirExpressionsSay(f *testing.F) {
	for _, text := range []string{
		"", "_", "a_", "a_.", "a_b", "1a_b", "a__b..c.", "pi_1 pm_2.", "é_a", "aé_a", "rak_charge_read", "rak__write",
		"rak_read", "rak_a_read_write", "pi_é", "pi_", "a_.b_c", "a.b_c*", "x_\n", "rak_a_write_read",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := redactIDs(text), idExpression.ReplaceAllStringFunc(text, redactID); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got, want := isPublicID(text), publicExpression.MatchString(text); got != want {
			t.Errorf("%q: got public %t, want %t", text, got, want)
		}
	})
}

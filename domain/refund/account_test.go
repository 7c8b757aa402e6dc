package refund_test

import (
	"testing"

	"orderonce/domain/refund"
)

// A person ends a refund that the provider has an id for, and the item keeps the id.
func TestAnOutcomeWithoutAnIDKeepsTheOneThatIsKnown(t *testing.T) {
	a := refund.Account{Items: []refund.Item{{ID: "R1", Status: refund.Unknown, Refund: "re_1"}}}
	for given, want := range map[refund.ProviderID]refund.ProviderID{"": "re_1", "re_2": "re_2"} {
		after, err := refund.Settled(a, "R1", refund.Outcome{Status: refund.Failed, Refund: given}, noon())
		if i, _ := after.Item("R1"); err != nil || i.Refund != want {
			t.Errorf("%q: got %+v, %v, want %s", given, i, err, want)
		}
	}
}

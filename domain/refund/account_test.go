package refund_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func TestRebase(t *testing.T) {
	t.Parallel()
	first := refund.Item{ID: "R1", Amount: 1000, Status: refund.Open}
	second := refund.Item{ID: "R2", Amount: 500, Status: refund.Open}
	seen := refund.Account{Status: order.Paid, Charged: order.Money{Amount: 3000}, Seq: 1, Items: []refund.Item{first}}
	c, err := refund.Settled(seen, "R1", refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}, noon())
	if err != nil {
		t.Fatal(err)
	}
	made, _ := c.After.Item("R1")
	now := seen
	now.Items = []refund.Item{first, second}
	got, err := c.Rebase(now)
	if diff := cmp.Diff(got.After.Items, []refund.Item{made, second}); err != nil || diff != "" {
		t.Errorf("a refund that was begun since: got %v and (-got +want):\n%s", err, diff)
	}
	if got.Before.Left() != 1500 || got.After.Left() != 1500 || got.After.Status != order.PartiallyRefunded || got.After.Seq != 2 {
		t.Errorf("got %+v, want the rest of both accounts without the begun refund", got)
	}
	adopted := c
	adopted.Before.Items = nil
	later := seen
	later.Seq++
	for claim, tt := range map[string]struct {
		change refund.Change
		now    refund.Account
	}{
		"another change was recorded":              {c, later},
		"the refund itself was begun":              {adopted, seen},
		"the refund that the change is of is gone": {c, refund.Account{Seq: 1}},
	} {
		if _, err := tt.change.Rebase(tt.now); !errors.Is(err, order.ErrStale) {
			t.Errorf("%s: got error %v, want ErrStale", claim, err)
		}
	}
}

// A person ends a refund that the provider has an id for, and the item keeps the id.
func TestAnOutcomeWithoutAnIDKeepsTheOneThatIsKnown(t *testing.T) {
	t.Parallel()
	a := refund.Account{Items: []refund.Item{{ID: "R1", Status: refund.Unknown, Refund: "re_1"}}}
	for given, want := range map[refund.ProviderID]refund.ProviderID{"": "re_1", "re_2": "re_2"} {
		c, err := refund.Settled(a, "R1", refund.Outcome{Status: refund.Failed, Refund: given}, noon())
		if i, _ := c.After.Item("R1"); err != nil || i.Refund != want {
			t.Errorf("%q: got %+v, %v, want %s", given, i, err, want)
		}
	}
}

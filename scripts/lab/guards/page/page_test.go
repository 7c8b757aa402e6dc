package page_test

import (
	"slices"
	"testing"

	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/attack"
)

// names returns what the guards of the page name, each once.
func names(of func(console.Guard) string) (all []string) {
	for _, g := range attack.Guards() {
		all = append(all, of(g))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestTheGuardsOfThePageArePatches compares the page with the patches. A few patches name
// an invariant that only the simulation can check, such as I5: then the page names the
// one that breaks as a consequence.
func TestTheGuardsOfThePageArePatches(t *testing.T) {
	t.Parallel()
	root, err := guards.Root(t.Context())
	must(t, err)
	checked := map[string]bool{}
	for _, c := range new(invariants.Books).Audit() {
		checked[c.ID] = true
	}
	if n := len(names(func(g console.Guard) string { return g.Name })); n < 8 || n > 12 || n < len(attack.Guards()) {
		t.Errorf("got %d guards, want 8 to 12, which a visitor can read, each once", n)
	}
	for _, g := range attack.Guards() {
		patch, err := guards.Find(root, g.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if g.Invariant != patch.Invariant && (checked[patch.Invariant] || !checked[g.Invariant]) {
			t.Errorf("%s: got invariant %s, the patch has %s", g.Name, g.Invariant, patch.Invariant)
		}
		if g.Title == "" || g.Missing == "" || g.Breaks == "" {
			t.Errorf("got %+v, want all texts", g)
		}
		if !slices.ContainsFunc(attack.Attacks(), func(a console.Attack) bool { return a.Name == g.Attack }) {
			t.Errorf("%s: got the attack %q, which the page does not have", g.Name, g.Attack)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

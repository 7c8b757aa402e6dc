package page_test

import (
	"path/filepath"
	"slices"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/attack"
)

// TestEachGuardOfThePageBreaksItsInvariant takes each guard away that the page of make up
// offers, and attacks the system as the page says, with the real functions.
func TestEachGuardOfThePageBreaksItsInvariant(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, g := range attack.Guards() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			s := k.start(t)
			_, err := s.desk.Guard(t.Context(), g.Name)
			must(t, err)
			broken := s.brokenBy(g.Attack)
			if !slices.ContainsFunc(broken, func(c invariants.Result) bool { return c.ID == g.Invariant }) {
				t.Errorf("%s: got %+v, want %s broken\n%s", g.Attack, broken, g.Invariant, s.log.Text())
			}
		})
	}
}

func TestTheSameAttacksBreakNothingWithEveryGuard(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, name := range names(func(g attack.Guard) string { return g.Attack }) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := k.start(t)
			for _, c := range s.brokenBy(name) {
				t.Errorf("%s (%s): %q\n%s", c.ID, c.Claim, c.Broken, s.log.Text())
			}
		})
	}
}

// names returns what the guards of the page name, each once.
func names(of func(attack.Guard) string) (all []string) {
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
	if n := len(names(func(g attack.Guard) string { return g.Name })); n < 8 || n > 12 || n < len(attack.Guards()) {
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

// kit has what a system needs: an engine and the binaries of the unchanged functions.
type kit struct {
	engine   dynamodbtest.Location
	root     string
	binaries map[string]string
}

func newKit(t *testing.T) kit {
	t.Helper()
	lambdatest.FullOnly(t)
	root, err := guards.Root(t.Context())
	must(t, err)
	k := kit{engine: dynamodbtest.Locate(t), root: root, binaries: map[string]string{}}
	for _, function := range []string{"order", "webhook", "reconcile", "publish"} {
		k.binaries[function] = filepath.Join(t.TempDir(), function)
		must(t, lambdatest.Program{Package: "./functions/" + function, Root: root}.Build(t.Context(), k.binaries[function]))
	}
	return k
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

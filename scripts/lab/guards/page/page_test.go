package page_test

import (
	"path/filepath"
	"slices"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/local/console/attack"
	"orderonce/scripts/local/system"
)

// TestEachGuardOfThePageBreaksItsInvariant runs the real order function without each
// guard that the page of make up offers, beside the unchanged functions, and attacks it
// as the page says.
func TestEachGuardOfThePageBreaksItsInvariant(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, g := range attack.Guards() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			without, err := guards.Find(k.root, g.Name)
			must(t, err)
			binary := filepath.Join(t.TempDir(), "order")
			must(t, without.Build(t.Context(), k.root, "./functions/order", binary))

			s := k.start(t, binary)
			s.attack(g.Attack)
			if broken := s.audit(); !slices.ContainsFunc(broken, func(c system.Check) bool { return c.ID == g.Invariant }) {
				t.Errorf("%s: got %+v, want %s broken\n%s", g.Attack, broken, g.Invariant, s.log.Text())
			}
		})
	}
}

func TestTheAttacksBreakNothingWithEveryGuard(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var names []string
	for _, g := range attack.Guards() {
		names = append(names, g.Attack)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := k.start(t, k.binaries["order"])
			s.attack(name)
			for _, c := range s.audit() {
				t.Errorf("%s (%s): %q\n%s", c.ID, c.Claim, c.Broken, s.log.Text())
			}
		})
	}
}

// TestTheGuardsOfThePageArePatches compares the page with the patches. A few patches name
// an invariant that only the simulation can check, such as I5: then the page names the
// one that breaks as a consequence.
func TestTheGuardsOfThePageArePatches(t *testing.T) {
	t.Parallel()
	root, err := guards.Root(t.Context())
	must(t, err)
	checked := map[string]bool{}
	for _, c := range new(system.Books).Audit() {
		checked[c.ID] = true
	}
	seen := map[string]bool{}
	for _, g := range attack.Guards() {
		patch, err := guards.Find(root, g.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if g.Invariant != patch.Invariant && (checked[patch.Invariant] || !checked[g.Invariant]) {
			t.Errorf("%s: got invariant %s, the patch has %s", g.Name, g.Invariant, patch.Invariant)
		}
		if seen[g.Name] || g.Title == "" || g.Missing == "" || g.Breaks == "" || attacks()[g.Attack] == nil {
			t.Errorf("got %+v, want a guard that is listed once, with all texts and a known attack", g)
		}
		seen[g.Name] = true
	}
	if n := len(seen); n < 8 || n > 12 {
		t.Errorf("got %d guards, want 8 to 12, which a visitor can read", n)
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

package guards_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/stage"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/attack"
	"orderonce/scripts/local/system/systemtest"
)

func allGuards(t *testing.T) (root string, all []guards.Guard) {
	t.Helper()
	root, err := guards.Root(t.Context())
	systemtest.Must(t, err)
	all, err = guards.All(root)
	systemtest.Must(t, err)
	if len(all) < 32 {
		t.Fatalf("got %d patches, want at least 32", len(all))
	}
	return root, all
}

func TestEveryPatchAppliesAndNamesAnInvariant(t *testing.T) {
	root, all := allGuards(t)
	design, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	systemtest.Must(t, err)
	for _, g := range all {
		t.Run(g.Name, func(t *testing.T) {
			_, err := g.Remove(root, t.TempDir())
			systemtest.Must(t, err)
			if len(g.Files()) == 0 {
				t.Error("the patch touches no file")
			}
			if !strings.Contains(string(design), "| "+g.Invariant+" |") {
				t.Errorf("docs/design.md has no %q", g.Invariant)
			}
			if g.Catcher.IsSimulation() != (g.Needs != "") {
				t.Errorf("got needs %q, caught by %s, want needs only with the simulation", g.Needs, g.Catcher)
			}
			if g.Catcher.IsSimulation() && !slices.Contains(oracle.Invariants(), stage.Invariant(g.Invariant)) {
				t.Errorf("the simulation does not check %q", g.Invariant)
			}
		})
	}
	if _, err := guards.Find(root, "nope"); !errors.Is(err, guards.ErrUnknown) {
		t.Errorf("got %v, want %v", err, guards.ErrUnknown)
	}
}

// A patch is what git diff prints, or its part that is read. It changes copies.
func TestAPatchReplacesLinesThatAFileHasOnce(t *testing.T) {
	root := t.TempDir()
	source := filepath.Join(root, "x.go")
	systemtest.Must(t, os.WriteFile(source, []byte("one\ntwo\n\tthree\ntwo\nfour\n"), 0o600))
	for diff, want := range map[string]string{
		"--- a/x.go\n+++ b/x.go\n@@ -3 +3 @@\n-\tthree\n+3\n": "one\ntwo\n3\ntwo\nfour\n",
		"+++ x.go\n-one\n@@\n-two\n four\n+five\n":            "two\n\tthree\nfour\nfive\n",
		"+++ x.go\n-two\n+2\n":                                "got them 2 times",
		"+++ x.go\n-three\n+3\n":                              "got them 0 times",
		"+++ x.go\n+three\n":                                  "got them",
		"+++ gone.go\n-one\n":                                 "no such file",
		"--- /dev/null\n+++ b/a/x.go\n@@ -0,0 +1 @@\n+new\n":  "new\n",
	} {
		g, dir := guards.Guard{Diff: diff}, t.TempDir()
		got := ""
		if _, err := g.Remove(root, dir); err != nil {
			got = err.Error()
		} else if text, err := os.ReadFile(filepath.Join(dir, g.Files()[0].Path)); err == nil {
			got = string(text)
		}
		if got != want && !strings.Contains(got, "does not apply: ") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", diff, got, want)
		}
	}
	g := guards.Guard{Diff: "--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-1\n+2\n@@ -9 +9 @@\n-9\n--- /dev/null\n+++ b/y.go\n+3\n"}
	if d := cmp.Diff(g.Changes(), "    x.go\n    ...\n    -1\n    +2\n    ...\n    -9\n    y.go\n    ...\n    +3\n"); d != "" {
		t.Errorf("changes: (-got +want)\n%s", d)
	}
}

func TestAPatchNeedsItsTwoLines(t *testing.T) {
	const diff = "+++ x.go\n-1\n"
	for _, text := range []string{
		diff, "# what\n" + diff, "# what\n# caught by: I1\n", "# caught by: I1\n" + diff,
		"# what\n# caught by: TestX in ./x\n" + diff, "# what\n# caught by: I1, by TestX\n" + diff,
		"# what\n# caught by: I1, within worlds\n" + diff, "# what\n# needs: 429\n# caught by: I1\n" + diff,
		"# what\n# caught by: I1, by TestX in ./x\n# needs: 429\n" + diff,
	} {
		if _, err := guards.Parse(text); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
	for caught, want := range map[string]guards.Guard{
		"I1":                                {Invariant: "I1", Catcher: guards.Search()},
		"I2\n# needs: 429; a declined card": {Invariant: "I2", Catcher: guards.Search(), Needs: "429; a declined card"},
		"I11, within 10000 worlds":          {Invariant: "I11", Catcher: guards.Random(), Worlds: "10000"},
		"I10, by TestX in ./adapters/sqs":   {Invariant: "I10", Catcher: guards.Catcher{Test: "TestX", Pkg: "./adapters/sqs"}},
		`I4, by TestX "it's, so" in ./a/b/c`: {
			Invariant: "I4", Catcher: guards.Catcher{Test: "TestX", Claim: "it's, so", Pkg: "./a/b/c"},
		},
	} {
		want.Summary, want.Diff = "what", diff
		if got, err := guards.Parse("# what\n# caught by: " + caught + "\n" + diff); err != nil || got != want {
			t.Errorf("%q: got %+v and %v, want %+v", caught, got, err, want)
		}
	}
}

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
	root, _ := allGuards(t)
	checked := map[string]bool{}
	for _, c := range new(invariants.Books).Check() {
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
		named := func(a console.Attack) bool { return a.Name == g.Attack }
		has := func(of console.Group) bool { return slices.ContainsFunc(of.Attacks, named) }
		if !slices.ContainsFunc(new(attack.Attacker).Attacks(), has) {
			t.Errorf("%s: got the attack %q, which the page does not have", g.Name, g.Attack)
		}
	}
}

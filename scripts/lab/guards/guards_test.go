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
)

func allGuards(t *testing.T) (root string, all []guards.Guard) {
	t.Helper()
	root, err := guards.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err = guards.All(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 32 {
		t.Fatalf("got %d patches, want at least 32", len(all))
	}
	return root, all
}

func TestEveryPatchAppliesAndNamesAnInvariant(t *testing.T) {
	t.Parallel()
	root, all := allGuards(t)
	design := content(t, filepath.Join(root, "docs", "design.md"))
	for _, g := range all {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if _, err := g.Remove(t.Context(), root, dir); err != nil {
				t.Fatal(err)
			}
			if len(g.Files()) == 0 {
				t.Error("the patch touches no file")
			}
			for _, f := range g.Files() {
				if !f.Added && content(t, filepath.Join(root, f.Path)) == content(t, filepath.Join(dir, f.Path)) {
					t.Errorf("the patch does not change %s", f.Path)
				}
			}
			for _, old := range oldTexts(g.Diff) {
				text := func(f guards.File) string { return content(t, filepath.Join(root, f.Path)) }
				in := func(f guards.File) bool { return !f.Added && strings.Contains(text(f), old) }
				once := func(f guards.File) bool { return in(f) && strings.Count(text(f), old) == 1 }
				if slices.ContainsFunc(g.Files(), in) && !slices.ContainsFunc(g.Files(), once) {
					t.Errorf("the patch needs more context, because its file has this twice:\n%s", old)
				}
			}
			if !strings.Contains(design, "| "+g.Invariant+" |") {
				t.Errorf("docs/design.md has no %q", g.Invariant)
			}
			if g.Catcher.IsSimulation() != (g.Needs != "") {
				t.Errorf("got needs %q, caught by %s, want needs only with the simulation", g.Needs, g.CaughtBy())
			}
			if g.Catcher.IsSimulation() &&
				!slices.Contains(oracle.Invariants(), stage.Invariant(g.Invariant)) {
				t.Errorf("the simulation does not check %q", g.Invariant)
			}
		})
	}
}

// oldTexts returns what each hunk of a diff replaces, with its context.
func oldTexts(diff string) (all []string) {
	for hunk := range strings.SplitSeq(diff, "\n@@ ") {
		old := "\n"
		for line := range strings.Lines(hunk) {
			if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "--- ") {
				old += line[1:]
			}
		}
		if len(old) > 1 {
			all = append(all, old)
		}
	}
	return all
}

func TestFind(t *testing.T) {
	t.Parallel()
	root, all := allGuards(t)
	for _, want := range all {
		if got, err := guards.Find(root, want.Name); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := guards.Find(root, "nope"); !errors.Is(err, guards.ErrUnknown) ||
		!strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("got %v, want %v with the name", err, guards.ErrUnknown)
	}
	if none, err := guards.All(t.TempDir()); err != nil || len(none) > 0 {
		t.Errorf("folder without patches: got %d guards, error %v", len(none), err)
	}
}

func TestAPatchThatDoesNotApplyIsAnError(t *testing.T) {
	t.Parallel()
	root, all := allGuards(t)
	stale := all[0]
	stale.Patch = filepath.Join(t.TempDir(), "stale.patch")
	if err := os.WriteFile(stale.Patch, []byte(strings.ReplaceAll(stale.Diff, "return", "retreat")), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := all[0]
	gone.Diff = "--- a/gone.go\n+++ b/gone.go\n"
	for name, g := range map[string]guards.Guard{"other lines": stale, "no such file": gone} {
		if _, err := g.Remove(t.Context(), root, t.TempDir()); err == nil ||
			!strings.Contains(err.Error(), "does not apply") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAPatchNeedsItsTwoLines(t *testing.T) {
	t.Parallel()
	const diff = "--- a/x.go\n+++ b/x.go\n"
	for _, head := range []string{
		"", "# what\n", "# caught by: I1\n# what\n", "# caught by: I1\n",
		"# what\n# caught by: TestX in ./x\n", "# what\n# caught by: I1, by TestX\n",
		"# what\n# caught by: I1, within worlds\n", "# what\n# caught by: I1, by TestX in ./x\n# needs: 429\n",
		"# what\n# needs: 429\n# caught by: I1\n",
	} {
		if _, err := guards.Parse(head + diff); err == nil {
			t.Errorf("%q: got no error", head+diff)
		}
	}
	if _, err := guards.Parse("# what\n# caught by: I1\n"); err == nil {
		t.Error("no diff: got no error")
	}
	for caught, want := range map[string]guards.Guard{
		"I1":                              {Invariant: "I1", Catcher: guards.Search()},
		"I2 needs 429; a declined card":   {Invariant: "I2", Catcher: guards.Search()},
		"I11, within 10000 worlds":        {Invariant: "I11", Catcher: guards.Random(), Worlds: "10000"},
		"I10, by TestX in ./adapters/sqs": {Invariant: "I10", Catcher: guards.Catcher{Test: "TestX", Pkg: "./adapters/sqs"}},
		`I4, by TestX "it's, so" in ./a/b/c`: {
			Invariant: "I4", Catcher: guards.Catcher{Test: "TestX", Claim: "it's, so", Pkg: "./a/b/c"},
		},
	} {
		if needs, rest, ok := strings.Cut(caught, " needs "); ok {
			caught, want.Needs = needs+"\n# needs: "+rest, rest
		}
		want.Summary, want.Diff = "what", diff
		if got, err := guards.Parse("# what\n# caught by: " + caught + "\n" + diff); err != nil || got != want {
			t.Errorf("%q: got %+v and %v, want %+v", caught, got, err, want)
		}
		if got := want.CaughtBy(); !strings.HasPrefix(caught, got) {
			t.Errorf("caught by %q, want %q", got, caught)
		}
	}
}

func TestAPatchMayAddAFile(t *testing.T) {
	t.Parallel()
	g := guards.Guard{Diff: "--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-1\n+2\n--- /dev/null\n+++ b/y.go\n@@ -0,0 +1 @@\n+3\n"}
	if d := cmp.Diff(g.Files(), []guards.File{{Path: "x.go"}, {Path: "y.go", Added: true}}); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
	if d := cmp.Diff(g.Changes(), "    x.go\n    ...\n    -1\n    +2\n    y.go\n    ...\n    +3\n"); d != "" {
		t.Errorf("changes: (-got +want)\n%s", d)
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
	t.Parallel()
	root, _ := allGuards(t)
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

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orderonce/scripts/prove"
)

func allGuards(t *testing.T) (root string, guards []guard) {
	t.Helper()
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	guards, err = readGuards(filepath.Join(root, bugs))
	if err != nil {
		t.Fatal(err)
	}
	if len(guards) == 0 {
		t.Fatal("no patches")
	}
	return root, guards
}

func TestEveryPatchAppliesAndNamesAnInvariant(t *testing.T) {
	t.Parallel()
	root, guards := allGuards(t)
	for _, g := range guards {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := g.apply(t.Context(), root, dir); err != nil {
				t.Fatal(err)
			}
			if len(g.files()) == 0 {
				t.Error("it touches no file")
			}
			for _, f := range g.files() {
				if read(t, filepath.Join(root, f)) == read(t, filepath.Join(dir, f)) {
					t.Errorf("it does not change %s", f)
				}
			}
			if !slices.Contains(prove.Invariants(), prove.Invariant(g.caughtBy)) {
				t.Errorf("no world sees %q", g.caughtBy)
			}
		})
	}
}

func TestEveryMissingGuardIsCaughtAndTheTreeStaysAsItIs(t *testing.T) {
	t.Parallel()
	if os.Getenv("ORDERONCE_SLOW") == "" {
		t.Skip("searches once for each guard, which takes a minute: set ORDERONCE_SLOW=1, or run make test")
	}
	root, guards := allGuards(t)
	for _, g := range guards {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			before := read(t, filepath.Join(root, g.files()[0]))
			var out strings.Builder
			if err := run(t.Context(), &out, g.name); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{g.says, "who", g.caughtBy + " broken for order ORD-1", "Caught by " + g.caughtBy} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant %q in it", out.String(), want)
				}
			}
			if read(t, filepath.Join(root, g.files()[0])) != before {
				t.Error("the file in the tree has changed")
			}
		})
	}
}

func TestWithoutANameEveryGuardIsListed(t *testing.T) {
	t.Parallel()
	_, guards := allGuards(t)
	var out strings.Builder
	if err := run(t.Context(), &out, ""); err != nil {
		t.Fatal(err)
	}
	for _, g := range guards {
		if !strings.Contains(out.String(), g.says) {
			t.Errorf("%s is missing in\n%s", g.name, out.String())
		}
	}
}

func TestAnUnknownGuardIsAnError(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), new(strings.Builder), "nope"); err == nil || !strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("got %v, want an error that names it", err)
	}
}

func TestAPatchThatDoesNotApplySaysSo(t *testing.T) {
	t.Parallel()
	root, guards := allGuards(t)
	dir := t.TempDir()
	stale := guards[0]
	stale.patch = filepath.Join(dir, "stale.patch")
	write(t, stale.patch, strings.ReplaceAll(stale.diff, "err", "was"))
	gone := guards[0]
	gone.diff = "--- a/gone.go\n+++ b/gone.go\n"
	for name, g := range map[string]guard{"other lines": stale, "no such file": gone} {
		if _, err := g.take(t.Context(), root); err == nil || !strings.Contains(err.Error(), "does not apply any more") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOnlyTheExpectedInvariantIsASuccess(t *testing.T) {
	t.Parallel()
	g, failed := guard{name: "bind", caughtBy: "I1"}, errors.New("exit status 1")
	const story = "a world:\n\ntime  who\n0s    A\n\nI1 broken for order ORD-1: 2 successful charges\n"
	const broken = "--- FAIL: TestScenario (1.0s)\n    a world:\n    \n    time  who\n    0s    A\n    \n" +
		"    I1 broken for order ORD-1: 2 successful charges\n    scenario_test.go:9: some\nFAIL\n"
	instead := func(other, text string) string { return strings.ReplaceAll(text, "I1", other) }
	tests := map[string]struct {
		out     string
		testErr error
		story   string
		wantErr string
	}{
		"caught":                 {broken, failed, story, ""},
		"not caught":             {"ok  \torderonce/scripts/prove\n", nil, "", "NOT CAUGHT"},
		"does not compile":       {"FAIL\torderonce/scripts/prove [build failed]\n", failed, "", "does not compile any more"},
		"caught by another":      {instead("I4", broken), failed, instead("I4", story), "I4 was broken; the patch expects I1"},
		"the search panicked":    {"panic: oh\n", failed, "", "the search itself failed"},
		"I11 is another than I1": {instead("I11", broken), failed, instead("I11", story), "I11 was broken"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := g.judge(tt.out, tt.testErr)
			if got != tt.story {
				t.Errorf("got the story %q, want %q", got, tt.story)
			}
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want %q", err, tt.wantErr)
			}
		})
	}
}

func TestAPatchWithoutItsTwoLinesIsRefused(t *testing.T) {
	t.Parallel()
	const diff = "--- a/x.go\n+++ b/x.go\n"
	for _, text := range []string{"", diff, "# what\n" + diff, "# caught by: I1\n# what\n" + diff, "# what\n# caught by: I1\n"} {
		if _, err := parseGuard(text); err == nil {
			t.Errorf("%q was taken for a guard", text)
		}
	}
	got, err := parseGuard("# what\n# caught by: I1\n" + diff)
	if want := (guard{says: "what", caughtBy: "I1", diff: diff}); err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

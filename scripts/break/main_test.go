package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	if len(guards) < 32 {
		t.Fatalf("%d patches, want at least 32", len(guards))
	}
	return root, guards
}

func TestEveryPatchAppliesAndNamesAnInvariant(t *testing.T) {
	t.Parallel()
	root, guards := allGuards(t)
	design := content(t, filepath.Join(root, "docs", "design.md"))
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
				if !f.added && content(t, filepath.Join(root, f.path)) == content(t, filepath.Join(dir, f.path)) {
					t.Errorf("it does not change %s", f.path)
				}
			}
			if !strings.Contains(design, "| "+g.promise+" |") {
				t.Errorf("docs/design.md has no %q", g.promise)
			}
			if g.catcher.tells() && !slices.Contains(prove.Invariants(), prove.Invariant(g.promise)) {
				t.Errorf("no world sees %q", g.promise)
			}
		})
	}
}

func TestEveryMissingGuardIsCaughtAndTheTreeStaysAsItIs(t *testing.T) {
	t.Parallel()
	if os.Getenv("ORDERONCE_SLOW") == "" {
		t.Skip("builds and tests once for each guard, which takes two minutes: set ORDERONCE_SLOW=1, or run make test")
	}
	root, guards := allGuards(t)
	for _, g := range guards {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			before := tree(t, root, g)
			var out strings.Builder
			err := run(t.Context(), &out, g.name)
			if errors.Is(err, errSkipped) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			told := []string{g.says, "Caught, as expected: " + g.promise + " is broken."}
			if g.catcher.tells() {
				told = append(told, "message 1", g.promise+" broken for order ORD-")
			} else {
				told = append(told, g.catcher.String())
			}
			for _, want := range told {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant %q in it", out.String(), want)
				}
			}
			if d := cmp.Diff(before, tree(t, root, g)); d != "" {
				t.Errorf("the tree has changed (-want +got):\n%s", d)
			}
		})
	}
}

// tree is what the tree holds of the files that a patch touches.
func tree(t *testing.T, root string, g guard) map[string]string {
	t.Helper()
	held := map[string]string{}
	for _, f := range g.files() {
		path := filepath.Join(root, f.path)
		if _, err := os.Stat(path); err == nil {
			held[f.path] = content(t, path)
		}
	}
	return held
}

func TestWithoutANameEveryGuardIsListed(t *testing.T) {
	t.Parallel()
	_, guards := allGuards(t)
	var out strings.Builder
	if err := run(t.Context(), &out, ""); err != nil {
		t.Fatal(err)
	}
	for _, g := range guards {
		listed := func(line string) bool {
			return strings.Contains(line, " "+g.name+" ") && strings.Contains(line, " "+g.promise+" ") &&
				strings.Contains(line, g.catcher.pkg) && strings.Contains(line, g.says)
		}
		if !slices.ContainsFunc(strings.Split(out.String(), "\n"), listed) {
			t.Errorf("%s has no line with all that is known of it in\n%s", g.name, out.String())
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
	if err := os.WriteFile(stale.patch, []byte(strings.ReplaceAll(stale.diff, "return", "retreat")), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := guards[0]
	gone.diff = "--- a/gone.go\n+++ b/gone.go\n"
	for name, g := range map[string]guard{"other lines": stale, "no such file": gone} {
		if _, err := g.take(t.Context(), root); err == nil || !strings.Contains(err.Error(), "does not apply any more") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// jsonLine is a line of `go test -json`.
func jsonLine(action, test, output string) string {
	return fmt.Sprintf(`{"Action":%q,"Test":%q,"Output":%q}`+"\n", action, test, output)
}

func TestOnlyTheExpectedInvariantIsASuccess(t *testing.T) {
	t.Parallel()
	const story = "a world:\n\ntime  who\n0s    A\n\nI1 broken for order ORD-1: 2 successful charges\n"
	printed := "=== RUN   TestScenario\n    " + strings.ReplaceAll(story, "\n", "\n    ") +
		"scenario_test.go:9: some\n--- FAIL: TestScenario (1.0s)\n"
	instead := func(other, text string) string { return strings.ReplaceAll(text, "I1", other) }
	ran := func(printed string) (out string) {
		out = jsonLine("run", "TestScenario", "")
		for line := range strings.Lines(printed) {
			out += jsonLine("output", "TestScenario", line)
		}
		return out
	}
	failed := jsonLine("fail", "TestScenario", "")
	tests := map[string]struct {
		out     string
		story   string
		wantErr string
	}{
		"caught":                 {ran(printed) + failed, story, ""},
		"not caught":             {ran("ok\n") + jsonLine("pass", "TestScenario", ""), "", "NOT CAUGHT"},
		"does not compile":       {`{"Action":"fail","FailedBuild":"orderonce/domain/order"}` + "\n", "", "does not compile any more"},
		"no such test":           {jsonLine("output", "", "testing: warning: no tests to run\n"), "", "there is no TestScenario in"},
		"the module is broken":   {"go: no go.mod\n", "", "go: no go.mod"},
		"the search panicked":    {ran("panic: oh\n"), "", "the search itself failed:\npanic: oh"},
		"caught by another":      {ran(instead("I4", printed)) + failed, instead("I4", story), "I4 was broken; the patch expects I1"},
		"I11 is another than I1": {ran(instead("I11", printed)) + failed, instead("I11", story), "I11 was broken"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard{name: "bind", promise: "I1", catcher: search()}
			told, err := g.judge(read([]byte(tt.out), g.catcher))
			check(t, told, err, tt.story, tt.wantErr)
		})
	}
}

func TestATestCatchesOnlyByFailingItself(t *testing.T) {
	t.Parallel()
	const itself, other = "TestStore/bind_of_another_intent", "TestStore/finish"
	ran := jsonLine("run", "TestStore", "") + jsonLine("run", itself, "")
	message := jsonLine("output", itself, "=== RUN   "+itself+"\n") + jsonLine("output", itself, "    store.go:4: got <nil>\n") +
		jsonLine("output", itself, "    --- FAIL: "+itself+" (0.0s)\n")
	outer := func(action, output string) string { return jsonLine(action, "TestStore", output) }
	inner := func(action, output string) string { return jsonLine(action, itself, output) }
	const says = "TestStore \"bind of another intent\" in ./adapters/dynamodb:\n"
	tests := map[string]struct{ out, story, wantErr string }{
		"it fails":                      {ran + message + inner("fail", "") + outer("fail", ""), says + "    store.go:4: got <nil>\n", ""},
		"it panics in another place":    {ran + inner("output", "panic: oh\n\ngoroutine 1 [running]:\nmain.go:1\n"), says + "panic: oh\n", ""},
		"another one fails":             {ran + message + inner("pass", "") + jsonLine("fail", other, "") + outer("fail", ""), "", "NOT CAUGHT"},
		"it is not there any more":      {outer("run", "") + outer("pass", ""), "", `there is no TestStore "bind of another intent"`},
		"what it needs is not here":     {outer("run", "") + outer("output", "no engine: make engine\n") + outer("skip", ""), "", "no engine: "},
		"it is skipped":                 {ran + inner("skip", ""), "", errSkipped.Error()},
		"what it needs cannot be begun": {outer("run", "") + outer("fail", ""), "", "there is no TestStore"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard{name: "bind", promise: "I1", catcher: catcher{"TestStore", "bind of another intent", "./adapters/dynamodb"}}
			told, err := g.judge(read([]byte(tt.out), g.catcher))
			check(t, told, err, tt.story, tt.wantErr)
		})
	}
}

func check(t *testing.T, told string, err error, story, wantErr string) {
	t.Helper()
	if d := cmp.Diff(story, told); d != "" {
		t.Errorf("the story (-want +got):\n%s", d)
	}
	if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
		t.Errorf("got %v, want %q", err, wantErr)
	}
}

func TestALongMessageIsCut(t *testing.T) {
	t.Parallel()
	got := brief(strings.Repeat(strings.Repeat("x", 2*mostWidth)+"\n", mostLines+3))
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != mostLines+1 || lines[0] != strings.Repeat("x", mostWidth)+" ..." || lines[mostLines] != "    and 3 lines more" {
		t.Errorf("got\n%s", got)
	}
}

func TestACatcherRunsItsOwnTestAlone(t *testing.T) {
	t.Parallel()
	for c, want := range map[catcher]string{
		search(): "^TestScenario$",
		{"TestStore", "bind (of it) is fenced", "./x"}: `^TestStore$/^bind_\(of_it\)_is_fenced$`,
		{"TestAnswers", "a 500/prepare", "./x"}:        "^TestAnswers$/^a_500$/^prepare$",
	} {
		if got := c.pattern(); got != want {
			t.Errorf("%s: got %q, want %q", c, got, want)
		}
	}
}

func TestAPatchWithoutItsTwoLinesIsRefused(t *testing.T) {
	t.Parallel()
	const diff = "--- a/x.go\n+++ b/x.go\n"
	for _, head := range []string{
		"", "# what\n", "# caught by: I1\n# what\n", "# caught by: I1\n",
		"# what\n# caught by: TestX in ./x\n", "# what\n# caught by: I1, by TestX\n",
		"# what\n# caught by: I1, within worlds\n",
	} {
		if _, err := parseGuard(head + diff); err == nil {
			t.Errorf("%q was taken for a guard", head+diff)
		}
	}
	if _, err := parseGuard("# what\n# caught by: I1\n"); err == nil {
		t.Error("a guard without a diff was taken for one")
	}
	for caught, want := range map[string]guard{
		"I1":                                 {promise: "I1", catcher: search()},
		"I11, within 10000 worlds":           {promise: "I11", catcher: random(), worlds: "10000"},
		"I10, by TestX in ./adapters/sqs":    {promise: "I10", catcher: catcher{"TestX", "", "./adapters/sqs"}},
		`I4, by TestX "it's, so" in ./a/b/c`: {promise: "I4", catcher: catcher{"TestX", "it's, so", "./a/b/c"}},
	} {
		want.says, want.diff = "what", diff
		if got, err := parseGuard("# what\n# caught by: " + caught + "\n" + diff); err != nil || got != want {
			t.Errorf("%q: got %+v and %v, want %+v", caught, got, err, want)
		}
	}
}

func TestAPatchMayAddAFile(t *testing.T) {
	t.Parallel()
	g := guard{diff: "--- a/x.go\n+++ b/x.go\n-1\n+2\n--- /dev/null\n+++ b/y.go\n@@ -0,0 +1 @@\n+3\n"}
	if d := cmp.Diff([]file{{"x.go", false}, {"y.go", true}}, g.files(), cmp.AllowUnexported(file{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
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

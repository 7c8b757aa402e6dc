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

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/guards"
)

func allGuards(t *testing.T) (root string, all []guards.Guard) {
	t.Helper()
	root, err := guards.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all, err = guards.All(root); err != nil {
		t.Fatal(err)
	}
	return root, all
}

func TestEveryMissingGuardIsCaughtAndTheTreeStaysAsItIs(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	if err := lambdatest.OpenSources(t.Context(), "orderonce/..."); err != nil { // the catchers run in processes of their own
		t.Fatal(err)
	}
	root, all := allGuards(t)
	for _, g := range all {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			before := tree(t, root, g)
			var out strings.Builder
			err := run(t.Context(), &out, g.Name, false)
			if errors.Is(err, errSkipped) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			told := []string{g.Says, "Caught, as expected: " + g.Promise + " is broken."}
			if g.Catcher.Tells() {
				told = append(told, "message 1", g.Promise+" broken for order ORD-")
			} else {
				told = append(told, g.Catcher.String())
			}
			for _, want := range told {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant %q in it", out.String(), want)
				}
			}
			if d := cmp.Diff(tree(t, root, g), before); d != "" {
				t.Errorf("the tree has changed (-got +want):\n%s", d)
			}
		})
	}
}

// tree is what the tree holds of the files that a patch touches.
func tree(t *testing.T, root string, g guards.Guard) map[string]string {
	t.Helper()
	held := map[string]string{}
	for _, f := range g.Files() {
		path := filepath.Join(root, f.Path)
		if _, err := os.Stat(path); err == nil {
			held[f.Path] = content(t, path)
		}
	}
	return held
}

func TestWithoutANameEveryGuardIsListed(t *testing.T) {
	t.Parallel()
	_, all := allGuards(t)
	var out strings.Builder
	if err := run(t.Context(), &out, "", false); err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		listed := func(line string) bool {
			return strings.Contains(line, " "+g.Name+" ") && strings.Contains(line, " "+g.Promise+" ") &&
				strings.Contains(line, g.Catcher.Pkg) && strings.Contains(line, g.Says)
		}
		if !slices.ContainsFunc(strings.Split(out.String(), "\n"), listed) {
			t.Errorf("%s has no line with all that is known of it in\n%s", g.Name, out.String())
		}
	}
}

func TestAnUnknownGuardIsAnError(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), new(strings.Builder), "nope", false); err == nil ||
		!strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("got %v, want an error that names it", err)
	}
}

// jsonLine is a line of `go test -json`.
func jsonLine(action, test, output string) string {
	return fmt.Sprintf(`{"Action":%q,"Test":%q,"Output":%q}`+"\n", action, test, output)
}

func TestOnlyTheExpectedInvariantIsASuccess(t *testing.T) {
	t.Parallel()
	const story = "a world:\n\ntime  who\n0s    A\n\nI1 broken for order ORD-1: 2 successful charges\nNeeds: 429\n"
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
		"caught":     {ran(printed) + failed, story, ""},
		"not caught": {ran("ok\n") + jsonLine("pass", "TestScenario", ""), "", "NOT CAUGHT"},
		"does not compile": {
			`{"Action":"fail","FailedBuild":"orderonce/domain/order"}` + "\n",
			"",
			"does not compile any more",
		},
		"no such test": {
			jsonLine("output", "", "testing: warning: no tests to run\n"),
			"",
			"there is no TestScenario in",
		},
		"the module is broken": {"go: no go.mod\n", "", "go: no go.mod"},
		"the search panicked":  {ran("panic: oh\n"), "", "the search itself failed:\npanic: oh"},
		"caught by another": {
			ran(instead("I4", printed)) + failed,
			instead("I4", story),
			"I4 was broken; the patch expects I1",
		},
		"it needs something else": {
			ran(strings.ReplaceAll(printed, "429", "503")) + failed, strings.ReplaceAll(story, "429", "503"),
			`needs "503"; the patch says "429"`,
		},
		"I11 is another than I1": {ran(instead("I11", printed)) + failed, instead("I11", story), "I11 was broken"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guards.Guard{Name: "bind", Promise: "I1", Catcher: guards.Search(), Needs: "429"}
			told, err := judge(g, read([]byte(tt.out), g.Catcher))
			check(t, told, err, tt.story, tt.wantErr)
		})
	}
}

func TestATestCatchesOnlyByFailingItself(t *testing.T) {
	t.Parallel()
	const itself, other = "TestStore/bind_of_another_intent", "TestStore/finish"
	ran := jsonLine("run", "TestStore", "") + jsonLine("run", itself, "")
	message := jsonLine("output", itself,
		"=== RUN   "+itself+"\n") + jsonLine("output", itself, "    store.go:4: got <nil>\n") +
		jsonLine("output", itself, "    --- FAIL: "+itself+" (0.0s)\n")
	outer := func(action, output string) string { return jsonLine(action, "TestStore", output) }
	inner := func(action, output string) string { return jsonLine(action, itself, output) }
	const says = "TestStore \"bind of another intent\" in ./adapters/dynamodb:\n"
	tests := map[string]struct{ out, story, wantErr string }{
		"it fails": {
			ran + message + inner("fail", "") + outer("fail", ""),
			says + "    store.go:4: got <nil>\n",
			"",
		},
		"it panics in another place": {
			ran + inner("output", "panic: oh\n\ngoroutine 1 [running]:\nmain.go:1\n"),
			says + "panic: oh\n",
			"",
		},
		"another one fails": {
			ran + message + inner("pass", "") + jsonLine("fail", other, "") + outer("fail", ""),
			"",
			"NOT CAUGHT",
		},
		"it is not there any more": {
			outer("run", "") + outer("pass", ""),
			"",
			`there is no TestStore "bind of another intent"`,
		},
		"what it needs is not here": {
			outer("run", "") + outer("output", "no engine: make engine\n") + outer("skip", ""),
			"",
			"no engine: ",
		},
		"it is skipped":                 {ran + inner("skip", ""), "", errSkipped.Error()},
		"what it needs cannot be begun": {outer("run", "") + outer("fail", ""), "", "there is no TestStore"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guards.Guard{Name: "bind", Promise: "I1", Catcher: guards.Catcher{
				Test: "TestStore", Claim: "bind of another intent", Pkg: "./adapters/dynamodb",
			}}
			told, err := judge(g, read([]byte(tt.out), g.Catcher))
			check(t, told, err, tt.story, tt.wantErr)
		})
	}
}

func check(t *testing.T, told string, err error, story, wantErr string) {
	t.Helper()
	if d := cmp.Diff(told, story); d != "" {
		t.Errorf("the story (-got +want):\n%s", d)
	}
	if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
		t.Errorf("got %v, want %q", err, wantErr)
	}
}

func TestALongMessageIsCut(t *testing.T) {
	t.Parallel()
	got := brief(strings.Repeat(strings.Repeat("x", 2*mostWidth)+"\n", mostLines+3))
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != mostLines+1 || lines[0] != strings.Repeat("x", mostWidth)+" ..." ||
		lines[mostLines] != "    and 3 lines more" {
		t.Errorf("got\n%s", got)
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

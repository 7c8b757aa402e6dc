package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	_ "orderonce/adapters/ses" // the catchers compile it, so go.sum must have what it needs
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

// openProduct opens the sources that the catchers read, which run in other processes.
func openProduct(t *testing.T) {
	t.Helper()
	if err := lambdatest.OpenSources(t.Context(), "domain/...", "adapters/...", "functions/..."); err != nil {
		t.Fatal(err)
	}
}

func TestEveryMissingGuardIsCaughtAndTheTreeIsUnchanged(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	openProduct(t)
	root, all := allGuards(t)
	m, err := remember(t.Context(), root, all)
	if err != nil {
		t.Fatal(err)
	}
	caught := m.caught(t, all)
	t.Logf("%d of %d bugs were caught before, and nothing has changed", len(caught), len(all))
	for _, g := range all {
		if slices.Contains(caught, g.Name) {
			continue
		}
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
			wants := []string{g.Summary, "Caught: " + g.Invariant + " is broken, as expected."}
			if g.Catcher.IsSimulation() {
				wants = append(wants, "message 1", g.Invariant+" broken for order ORD-")
			} else {
				wants = append(wants, g.Catcher.String())
			}
			for _, want := range wants {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant %q in it", out.String(), want)
				}
			}
			if d := cmp.Diff(tree(t, root, g), before); d != "" {
				t.Errorf("the tree has changed: (-got +want)\n%s", d)
			}
			if !t.Failed() {
				m.note(t, g)
			}
		})
	}
}

// tree returns the content of the files that a patch touches.
func tree(t *testing.T, root string, g guards.Guard) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, f := range g.Files() {
		path := filepath.Join(root, f.Path)
		if _, err := os.Stat(path); err == nil {
			files[f.Path] = content(t, path)
		}
	}
	return files
}

func TestAnUnknownGuardIsAnError(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "order")
	for _, err := range []error{run(t.Context(), io.Discard, "unknown", false), compile(t.Context(), "unknown", out)} {
		if !errors.Is(err, guards.ErrUnknown) || !strings.Contains(err.Error(), `"unknown"`) {
			t.Errorf("got %v, want an error that names it", err)
		}
	}
	if err := compile(t.Context(), "bind", "build/order"); !errors.Is(err, errRelative) {
		t.Errorf("got %v, want %v", err, errRelative)
	}
}

func TestTheCompiledFunctionIsNotTheProducts(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	without, intact := filepath.Join(t.TempDir(), "without"), filepath.Join(t.TempDir(), "intact")
	if err := errors.Join(compile(t.Context(), "bind", without), lambdatest.Build(t.Context(), "functions/order", intact)); err != nil {
		t.Fatal(err)
	}
	if content(t, without) == content(t, intact) {
		t.Error("got the same bytes with and without the guard, want others")
	}
}

// jsonLine is a line of `go test -json`.
func jsonLine(action, test, output string) string {
	return fmt.Sprintf(`{"Action":%q,"Test":%q,"Output":%q}`+"\n", action, test, output)
}

func TestOnlyTheExpectedInvariantIsACatch(t *testing.T) {
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
		history string
		wantErr string
	}{
		"caught":     {ran(printed) + failed, story, ""},
		"not caught": {ran("ok\n") + jsonLine("pass", "TestScenario", ""), "", "not caught"},
		"does not compile": {
			`{"Action":"fail","FailedBuild":"example.com/domain/order"}` + "\n", "", "product does not compile",
		},
		"no such test":            {jsonLine("output", "", "testing: warning: no tests to run\n"), "", "no test TestScenario in"},
		"the module is broken":    {"go: no go.mod\n", "", "go: no go.mod"},
		"the simulation panicked": {ran("panic: oh\n"), "", "the simulation failed:\npanic: oh"},
		"another invariant is broken": {
			ran(instead("I4", printed)) + failed, instead("I4", story), "I4 was broken; the patch expects I1",
		},
		"it needs other faults": {
			ran(strings.ReplaceAll(printed, "429", "503")) + failed, strings.ReplaceAll(story, "429", "503"),
			`needs "503"; the patch says "429"`,
		},
		"I11 is not I1": {ran(instead("I11", printed)) + failed, instead("I11", story), "I11 was broken"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guards.Guard{Name: "bind", Invariant: "I1", Catcher: guards.Search(), Needs: "429"}
			got, err := judge(g, parse([]byte(tt.out), g.Catcher))
			check(t, got, err, tt.history, tt.wantErr)
		})
	}
}

func TestACatchIsAFailureOfTheNamedTest(t *testing.T) {
	t.Parallel()
	const itself, other = "TestStore/bind_of_another_intent", "TestStore/finish"
	ran := jsonLine("run", "TestStore", "") + jsonLine("run", itself, "")
	message := jsonLine("output", itself,
		"=== RUN   "+itself+"\n") + jsonLine("output", itself, "    store.go:4: got <nil>\n") +
		jsonLine("output", itself, "    --- FAIL: "+itself+" (0.0s)\n")
	outer := func(action, output string) string { return jsonLine(action, "TestStore", output) }
	inner := func(action, output string) string { return jsonLine(action, itself, output) }
	const says = "TestStore \"bind of another intent\" in ./adapters/dynamodb:\n"
	tests := map[string]struct{ out, history, wantErr string }{
		"it fails": {ran + message + inner("fail", "") + outer("fail", ""), says + "    store.go:4: got <nil>\n", ""},
		"it panics in another goroutine": {
			ran + inner("output", "panic: oh\n\ngoroutine 1 [running]:\nmain.go:1\n"), says + "panic: oh\n", "",
		},
		"another subtest fails": {
			ran + message + inner("pass", "") + jsonLine("fail", other, "") + outer("fail", ""), "", "not caught",
		},
		"it does not exist": {
			outer("run", "") + outer("pass", ""), "", `no test TestStore "bind of another intent"`,
		},
		"its engine is missing": {
			outer("run", "") + outer("output", "no engine: make engine\n") + outer("skip", ""), "", "no engine: ",
		},
		"it is skipped":             {ran + inner("skip", ""), "", errSkipped.Error()},
		"its engine does not start": {outer("run", "") + outer("fail", ""), "", "no test TestStore"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guards.Guard{Name: "bind", Invariant: "I1", Catcher: guards.Catcher{
				Test: "TestStore", Claim: "bind of another intent", Pkg: "./adapters/dynamodb",
			}}
			got, err := judge(g, parse([]byte(tt.out), g.Catcher))
			check(t, got, err, tt.history, tt.wantErr)
		})
	}
}

func check(t *testing.T, got string, err error, want, wantErr string) {
	t.Helper()
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("output: (-got +want)\n%s", d)
	}
	if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
		t.Errorf("got error %v, want %q", err, wantErr)
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

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
	"orderonce/scripts/lab/stage"
	"orderonce/scripts/local/system/systemtest"
)

func allGuards(t *testing.T) (root string, all []guards.Guard) {
	t.Helper()
	root, err := guards.Root(t.Context())
	systemtest.Must(t, err)
	all, err = guards.All(root)
	systemtest.Must(t, err)
	return root, all
}

// openProduct opens the sources that the catchers read, which run in other processes.
func openProduct(t *testing.T) {
	t.Helper()
	systemtest.Must(t, lambdatest.OpenSources(t.Context(), "domain/...", "adapters/...", "functions/..."))
}

func TestEveryMissingGuardIsCaught(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	openProduct(t)
	root, all := allGuards(t)
	m := memory{root, map[string]string{}}
	caught := m.caught(t, all)
	t.Logf("%d of %d bugs were caught before, and nothing has changed", len(caught), len(all))
	turn, err := stage.Turn(os.Getenv("ORDERONCE_TURN"))
	systemtest.Must(t, err)
	for i, g := range all {
		if slices.Contains(caught, g.Name) || !turn(i) {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := run(t.Context(), &out, g.Name, false)
			if errors.Is(err, errSkipped) {
				t.Skip(err)
			}
			systemtest.Must(t, err)
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
			if !t.Failed() {
				m.note(t, g)
			}
		})
	}
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
	systemtest.Must(t, errors.Join(compile(t.Context(), "bind", without), lambdatest.Build(t.Context(), "functions/order", intact)))
	if content(t, without) == content(t, intact) {
		t.Error("got the same bytes with and without the guard, want others")
	}
}

// printed returns what go test -json prints: each line is an action, a test and its
// output.
func printed(lines ...[3]string) (out []byte) {
	for _, l := range lines {
		out = fmt.Appendf(out, `{"Action":%q,"Test":%q,"Output":%q}`+"\n", l[0], l[1], l[2])
	}
	return out
}

// What counts is that the named test failed, and of a simulation that it found the named
// invariant broken, by the faults that the patch names.
func TestACatchIsTheExpectedFailureOfTheNamedTest(t *testing.T) {
	const story = "a world:\n\ntime  who\n0s    A\n\nI1 broken for order ORD-1: 2 successful charges\nNeeds: 429\n"
	search := func(story string) []byte {
		text := "=== RUN   TestScenario\n    " + strings.ReplaceAll(story, "\n", "\n    ") +
			"scenario_test.go:9: some\n--- FAIL: TestScenario (1.0s)\n"
		lines := [][3]string{{"run", "TestScenario"}}
		for line := range strings.Lines(text) {
			lines = append(lines, [3]string{"output", "TestScenario", line})
		}
		return printed(append(lines, [3]string{"fail", "TestScenario"})...)
	}
	other := func(old, now string) string { return strings.ReplaceAll(story, old, now) }
	const itself, message = "TestStore/bind_of_another_intent", "    store.go:4: got <nil>\n"
	run, says := [3]string{"run", itself}, "TestStore \"bind of another intent\" in ./adapters/dynamodb:\n"
	scenario := guards.Guard{Name: "bind", Invariant: "I1", Catcher: guards.Search(), Needs: "429"}
	store := guards.Guard{Name: "bind", Invariant: "I1", Catcher: guards.Catcher{
		Test: "TestStore", Claim: "bind of another intent", Pkg: "./adapters/dynamodb",
	}}
	for claim, tt := range map[string]struct {
		g                guards.Guard
		out              []byte
		history, wantErr string
	}{
		"the search finds it":  {scenario, search(story), story, ""},
		"the search passes":    {scenario, printed([3]string{"run", "TestScenario"}, [3]string{"pass", "TestScenario"}), "", "not caught"},
		"no test was run":      {scenario, printed([3]string{"output", "", "no tests to run\n"}), "", "no test TestScenario in"},
		"the module is broken": {scenario, []byte("go: no go.mod\n"), "", "go: no go.mod"},
		"it does not compile":  {scenario, []byte(`{"Action":"fail","FailedBuild":"a/b"}` + "\n"), "", "product does not compile"},
		"the search panicked": {
			scenario, printed([3]string{"run", "TestScenario"}, [3]string{"output", "TestScenario", "panic: oh\n"}), "",
			"the simulation failed:\npanic: oh",
		},
		"another invariant": {scenario, search(other("I1", "I11")), other("I1", "I11"), "I11 was broken; the patch expects I1"},
		"other faults":      {scenario, search(other("429", "503")), other("429", "503"), `needs "503"; the patch says "429"`},

		"the test fails": {
			store, printed(run, [3]string{"output", itself, message}, [3]string{"fail", itself}, [3]string{"fail", "TestStore"}),
			says + message, "",
		},
		"it panics in another goroutine": {
			store, printed(run, [3]string{"output", itself, "panic: oh\n\ngoroutine 1 [running]:\nmain.go:1\n"}),
			says + "panic: oh\n", "",
		},
		"another subtest fails": {
			store, printed(run, [3]string{"pass", itself}, [3]string{"fail", "TestStore/finish"}, [3]string{"fail", "TestStore"}),
			"", "not caught",
		},
		"its engine does not start": {store, printed([3]string{"run", "TestStore"}, [3]string{"fail", "TestStore"}), "", "no test TestStore"},
		"its engine is missing": {
			store, printed([3]string{"run", "TestStore"}, [3]string{"output", "TestStore", "no engine\n"}, [3]string{"skip", "TestStore"}),
			"", "skipped:\nno engine",
		},
		"it is skipped": {store, printed(run, [3]string{"skip", itself}), "", errSkipped.Error()},
	} {
		got, err := judge(tt.g, parse(tt.out, tt.g.Catcher))
		if d := cmp.Diff(got, tt.history); d != "" {
			t.Errorf("%s: output: (-got +want)\n%s", claim, d)
		}
		if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("%s: got error %v, want %q", claim, err, tt.wantErr)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	systemtest.Must(t, err)
	return string(b)
}

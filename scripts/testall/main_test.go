package main

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded is what `go test -json` printed of packages of one test each: good passes, skips skips, fails fails beside one that passes,
// broken does not compile, exits calls os.Exit, empty has no tests.
func recorded(t *testing.T, packages ...string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range packages {
		text, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func TestTally(t *testing.T) {
	t.Parallel()
	const early, failure = "go test ended before it was done: ", "not everything passed"
	failed, killed := errors.New("exit status 1"), errors.New("signal: killed")
	for claim, tt := range map[string]struct {
		packages string
		ended    error
		want     counts
		err      string // "" for none
	}{
		"what passed is counted with its subtests":       {"good", nil, counts{2, 0, 0}, ""},
		"a package without tests is nothing":             {"good empty", nil, counts{2, 0, 0}, ""},
		"a skipped test is a failure":                    {"good skips", nil, counts{2, 0, 1}, "what was skipped shows nothing"},
		"a failed test is counted once":                  {"good fails", failed, counts{3, 1, 0}, failure},
		"a build failure is counted once":                {"good broken", failed, counts{2, 1, 0}, failure},
		"a test that ends the process is a failure":      {"good exits", failed, counts{2, 1, 0}, failure},
		"no package at all is a failure":                 {"", nil, counts{}, "nothing passed"},
		"a package without tests alone is a failure":     {"empty", nil, counts{}, "nothing passed"},
		"a go test that was killed between two packages": {"good", killed, counts{2, 0, 0}, early + "signal: killed"},
		"a go test that could not start":                 {"", failed, counts{}, early + "exit status 1\nnothing passed"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			tally := newTally(io.Discard)
			if err := tally.read(strings.NewReader(recorded(t, strings.Fields(tt.packages)...))); err != nil {
				t.Fatal(err)
			}
			if tally.counts != tt.want {
				t.Errorf("counted %v, want %v", tally.counts, tt.want)
			}
			if got := text(tally.verdict(tt.ended)); got != tt.err {
				t.Errorf("verdict %q, want %q", got, tt.err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAStreamThatIsCutAnywhereIsAFailure(t *testing.T) {
	t.Parallel()
	whole := recorded(t, "good")
	for n := range len(whole) - 1 { // but for the last newline
		tally := newTally(io.Discard)
		if err := errors.Join(tally.read(strings.NewReader(whole[:n])), tally.verdict(nil)); err == nil {
			t.Errorf("%d of %d bytes are taken for all", n, len(whole))
		}
	}
}

func TestALineTooLongIsAFailure(t *testing.T) {
	t.Parallel()
	tally := newTally(io.Discard)
	if err := tally.read(strings.NewReader(recorded(t, "good") + strings.Repeat("x", longestLine+1))); err == nil {
		t.Error("the rest of the stream was left out in silence")
	}
}

func TestWhatDidNotPassIsShownWhole(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct{ stream, want string }{
		"a failed test, and not the one beside it": {recorded(t, "fails"), `=== RUN   TestBooks
the books of July
    fails_test.go:10: charged once
    fails_test.go:11: charged twice
--- FAIL: TestBooks (0.00s)
FAIL
FAIL	shop/fails	0.002s
`},
		"a skipped test": {recorded(t, "skips"), `=== RUN   TestEngine
    skips_test.go:5: no engine
--- SKIP: TestEngine (0.00s)
ok    shop/skips                                            0.0 s
`},
		"a test that ends the process": {recorded(t, "exits"), `=== RUN   TestExits
halfway
FAIL	shop/exits	0.003s
`},
		"what the compiler says": {recorded(t, "broken"), `# shop/broken [shop/broken.test]
broken/broken.go:3:27: cannot use 1 (untyped int constant) as bool value in return statement
FAIL	shop/broken [build failed]
`},
		"a test that was cut off":             {cut(recorded(t, "exits"), `"Output":"FAIL`), "=== RUN   TestExits\nhalfway\n"},
		"a line that is no event, as it is":   {"go: downloading\n", "go: downloading\n"},
		"a package that passed, in one line":  {recorded(t, "good"), "ok    shop/good                                             0.0 s\n"},
		"nothing of a package without a test": {recorded(t, "empty"), ""},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			tally := newTally(&out)
			if err := tally.read(strings.NewReader(tt.stream)); err != nil {
				t.Fatal(err)
			}
			_ = tally.verdict(nil) // it prints what did not end
			if diff := cmp.Diff(out.String(), tt.want); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
		})
	}
}

// cut ends a stream before the line that holds some text.
func cut(stream, before string) string {
	head, _, _ := strings.Cut(stream, before)
	return head[:strings.LastIndex(head, "\n")+1]
}

func TestWatch(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct{ then, err string }{
		"a program that ends well has passed":       {"", ""},
		"a program that is killed has not":          {"kill -9 $$", "go test ended before it was done: signal: killed"},
		"a program that ends with an error has not": {"exit 2", "go test ended before it was done: exit status 2"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			got, err := watch(exec.CommandContext(t.Context(), "sh", "-c", "cat testdata/good.jsonl; "+tt.then), io.Discard)
			if want := (counts{passed: 2}); got != want || text(err) != tt.err {
				t.Errorf("got %v, %q, want %v, %q", got, text(err), want, tt.err)
			}
		})
	}
	endless := exec.CommandContext(t.Context(), "sh", "-c", "cat testdata/good.jsonl; head -c 17000000 /dev/zero")
	if _, err := watch(endless, io.Discard); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("error = %v, want that a line was too long", err)
	}
	if _, err := watch(exec.CommandContext(t.Context(), filepath.Join(t.TempDir(), "go")), io.Discard); err == nil {
		t.Error("a program that is not there has passed")
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	plain := command(nil, []string{"HOME=/home"})
	if got, want := strings.Join(plain.Args, " "), "go test -json ./..."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff(plain.Env, []string{"HOME=/home", "ORDERONCE_REQUIRE_ENGINE=1", "ORDERONCE_SLOW=1"}); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
	race := command([]string{"-race", "-v"}, nil)
	if got, want := strings.Join(race.Args, " "), "go test -json -race -v -skip "+oneByOne+" ./..."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Contains(race.Env, "ORDERONCE_PROVE_WORLDS=2000") {
		t.Errorf("got %q, want fewer worlds under the race detector", race.Env)
	}
}

// TestWhatRunsWithoutTheRaceDetectorExists keeps a test from being renamed and coming back in minutes of race detector.
func TestWhatRunsWithoutTheRaceDetectorExists(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`Test\w+`).FindAllString(oneByOne, -1)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(filepath.Clean(path))
		names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(string(source), "\nfunc "+name+"(") })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) > 0 {
		t.Errorf("no package under scripts has %q", names)
	}
}

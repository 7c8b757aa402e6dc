package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

// code is a module with mutants.
func code() fstest.MapFS {
	return fstest.MapFS{
		"domain/order/a.go": {
			Data: []byte("package order\n\nfunc f(n int) bool {\n\treturn n > 3 && n < 9\n}\n"),
		},
	}
}

func TestAReportIsParsedIntoLinesOfCode(t *testing.T) {
	t.Parallel()
	report := `{"go_module":"m","files":[{"file_name":"a.go","mutations":[
		{"type":"CONDITIONALS_BOUNDARY","status":"LIVED","line":4,"column":11},
		{"type":"INVERT_LOGICAL","status":"KILLED","line":4,"column":15}]}]}`
	got, err := parseReport([]byte(report), "domain/order", code())
	if err != nil {
		t.Fatal(err)
	}
	want := []mutant{
		{place{"domain/order/a.go", "CONDITIONALS_BOUNDARY", "return n ▸> 3 && n < 9"}, lived, 4},
		{place{"domain/order/a.go", "INVERT_LOGICAL", "return n > 3 ▸&& n < 9"}, killed, 4},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for broken, want := range map[string]string{
		"not JSON":                         "parse gremlins report of domain/order",
		`{"files":[{"file_name":"b.go"}]}`: "b.go",
		`{"files":[{"file_name":"a.go","mutations":[{"line":4,"column":99}]}]}`: "has no line 4, column 99",
		`{"files":[{"file_name":"a.go","mutations":[{"line":7,"column":1}]}]}`:  "has no line 7, column 1",
	} {
		if _, err := parseReport([]byte(broken), "domain/order", code()); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error = %v, want one with %q", broken, err, want)
		}
	}
}

const list = `# What no test can kill.

domain/order/a.go CONDITIONALS_BOUNDARY
	return n ▸> 3
because: 3 never comes

adapters/sqs/b.go INVERT_LOGICAL
	if a ▸&& b {
because: a is b
`

func TestEveryListedSurvivorNeedsAReason(t *testing.T) {
	t.Parallel()
	got, err := parseSurvivors(list)
	if err != nil {
		t.Fatal(err)
	}
	want := []survivor{
		{place{"domain/order/a.go", "CONDITIONALS_BOUNDARY", "return n ▸> 3"}, "3 never comes"},
		{place{"adapters/sqs/b.go", "INVERT_LOGICAL", "if a ▸&& b {"}, "a is b"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for broken, want := range map[string]string{
		"domain/order/a.go CONDITIONALS_BOUNDARY\n\treturn n ▸> 3":                       "2 lines, want 3",
		"domain/order/a.go CONDITIONALS_BOUNDARY\n\treturn n ▸> 3\nbecause:":             "and a reason",
		"domain/order/a.go CONDITIONALS_BOUNDARY\n\treturn n ▸> 3\nit is so":             "and a reason",
		"domain/order/a.go CONDITIONALS_BOUNDARY\n\treturn n > 3\nbecause: so":           "no ▸ before",
		"domain/order/a.go\n\treturn n ▸> 3\nbecause: so":                                "want a file and a type",
		list + "\ndomain/order/a.go CONDITIONALS_BOUNDARY\n\treturn n ▸> 3\nbecause: so": "duplicate survivor",
	} {
		if _, err := parseSurvivors(broken); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error = %v, want one with %q", broken, err, want)
		}
	}
}

func TestTheCheckedInListIsValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	known, err := parseSurvivors(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range known {
		source, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(s.File)))
		if err != nil {
			t.Error(err)
			continue
		}
		if line := strings.ReplaceAll(s.Code, mark, ""); !strings.Contains(string(source), line) {
			t.Errorf("%s has no line %q: survivor not found", s.File, line)
		}
	}
}

func mutants(status string, codes ...string) []mutant {
	var all []mutant
	for _, c := range codes {
		all = append(all, mutant{place{"domain/order/a.go", "INVERT_LOGICAL", c}, status, 1})
	}
	return all
}

func survivors(codes ...string) []survivor {
	var all []survivor
	for _, m := range mutants(lived, codes...) {
		all = append(all, survivor{m.place, "so"})
	}
	return all
}

func TestJudge(t *testing.T) {
	t.Parallel()
	var good, failing, wrong []mutant // controls
	for at, status := range controls("domain/order") {
		good, failing, wrong = append(good,
			mutant{at, status, 3}), append(failing, mutant{at, killed, 3}), append(wrong, mutant{at, lived, 3})
	}
	many := mutants(killed, strings.Split(strings.Repeat("x", 97), "")...)
	for claim, tt := range map[string]struct {
		mutants            []mutant
		known              []survivor
		efficacy, coverage float64
		err                string // "" for none
	}{
		"all are killed": {slices.Concat(many, good), nil, 100, 100, ""},
		"97 % is enough": {slices.Concat(many, mutants(lived, "a", "b", "c"), good), nil, 97, 100, ""},
		"96 % is not": {
			slices.Concat(many, mutants(lived, "a", "b", "c", "d"), good), nil, 100 * 97. / 101, 100,
			"domain/order: efficacy 96.0 %, want at least 97 %",
		},
		"a timeout counts for the coverage only": {
			slices.Concat(many, mutants(timedOut, "a", "b", "c", "d"), good), nil, 100, 100, "",
		},
		"a listed survivor does not count": {
			slices.Concat(many, mutants(lived, "a", "b", "c"), good), survivors("a"), 100 * 97. / 99, 100, "",
		},
		"a mutant that does not compile does not count": {slices.Concat(many, mutants(notViable, "a"), good), nil, 100, 100, ""},
		"an uncovered mutant counts for the coverage only": {
			slices.Concat(many, mutants(notCovered, "a", "b", "c"), good), nil, 100, 97, "",
		},
		"a listed survivor that is killed is an error": {
			slices.Concat(many, mutants(killed, "a"), good), survivors("a"), 100, 100, "listed survivor is killed",
		},
		"a listed survivor that no test reaches is an error": {
			slices.Concat(many, mutants(notCovered, "a"), good), survivors("a"), 100, 100 * 97. / 98, "listed survivor is killed",
		},
		"a listed survivor that is gone is an error": {
			slices.Concat(many, good), survivors("a"), 100, 100, "listed survivor not found",
		},
		"tests that fail for another reason are an error": {
			slices.Concat(many, failing), nil, 100, 100, "control mutant of domain/order is KILLED, want LIVED",
		},
		"tests of another package are an error": {
			slices.Concat(many, wrong), nil, 100, 100, "control mutant of domain/order is LIVED, want KILLED",
		},
		"a package without its control is an error": {many, nil, 100, 100, "no control mutant of domain/order"},
		"nothing tested is an error":                {good, nil, 0, 0, "efficacy 0.0 %"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			other := survivor{
				place{"adapters/sqs/b.go", "INVERT_LOGICAL", "elsewhere"}, "so",
			} // of another package: ignored
			r := judge("domain/order", tt.mutants, append(tt.known, other))
			if r.efficacy() != tt.efficacy || r.coverage() != tt.coverage {
				t.Errorf("got efficacy %v, coverage %v, want %v and %v", r.efficacy(), r.coverage(),
					tt.efficacy, tt.coverage)
			}
			err := verdict([]result{r}, 97)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error = %v, want %q", err, tt.err)
			}
		})
	}
}

func TestASurvivorIsPrintedInTheFormatOfTheList(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := judge("domain/order", mutants(lived, "if a ▸&& b {"), nil)
	if err := show(&out, []result{r}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"LIVED, line 1 of\ndomain/order/a.go INVERT_LOGICAL\n\tif a ▸&& b {\nbecause: \n", "│ domain/order │", "0.0 %",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%s\nwant %q in it", out.String(), want)
		}
	}
}

func TestTheCopyHasTheSourcesAndTheControls(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "module")
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n", "a/a_test.go": "package a_test\n", "a/a.go": "// Command a.\npackage main\n",
		".git/HEAD": "x", "build/x": "x", "a/node_modules/x": "x",
	} {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyModule(from, to); err != nil {
		t.Fatal(err)
	}
	if err := (runner{dir: to}).prepare("a"); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := fs.WalkDir(os.DirFS(to), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/a.go", "a/a_test.go", "a/" + control, "a/" + controlTest, "go.mod"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	for file, want := range map[string]string{
		"a.go": "// Command a.\npackage a\n", "a_test.go": "package a_test\n", control: "package a\n", controlTest: "package a\n",
	} {
		got, err := os.ReadFile(filepath.Join(to, "a", file))
		if err != nil || !strings.HasPrefix(string(got), want) {
			t.Errorf("%s begins with %q, %v, want %q", file, got, err, want)
		}
	}
	if err := (runner{dir: to}).prepare("nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want ErrNotExist", err)
	}
}

func TestAMutantThatDoesNotCompileIsNotViable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := "package a\n\nfunc sum(a, b int) int {\n\treturn a + b\n}\n\nfunc text(a, b string) string {\n\treturn a + b\n}\n"
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "a/a.go": source} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	all := []mutant{
		{place{"a/a.go", "ARITHMETIC_BASE", "return a ▸+ b"}, killed, 4},
		{place{"a/a.go", "ARITHMETIC_BASE", "return a ▸+ b"}, killed, 8},
		{place{"a/a.go", "ARITHMETIC_BASE", "return a ▸+ b"}, lived, 8},
	}
	if err := (runner{dir: dir}).markNotViable(t.Context(), "a", all); err != nil {
		t.Fatal(err)
	}
	if all[0].status != killed || all[1].status != notViable || all[2].status != lived {
		t.Errorf("got %+v, want the sum killed and the text not viable", all)
	}
}

func TestTheTestsRunUncachedAndWithTheEngine(t *testing.T) {
	t.Parallel()
	env := runner{
		engine: dynamodbtest.Location{Binary: "/somewhere/dynoxide"},
	}.environ([]string{"HOME=/home"})
	for _, want := range []string{"HOME=/home", "GOFLAGS=-count=1", "ORDERONCE_ALL=1"} {
		if !slices.Contains(env, want) {
			t.Errorf("got %q, want %s in it", env, want)
		}
	}
	if !slices.ContainsFunc(env,
		func(v string) bool { return strings.HasPrefix(v, "PATH=/somewhere"+string(filepath.ListSeparator)) }) {
		t.Errorf("got %q, want the engine's folder first in PATH", env)
	}
}

func TestProgressShowsSurvivorsAndKeepsTheLastLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printed := "Starting...\n      KILLED X at a.go:1:1\n       LIVED Y at a.go:2:1\n   TIMED OUT Z at a.go:3:1\n" +
		" NOT COVERED X at a.go:4:1\nthe end\n"
	if got := (runner{out: &out}).follow("domain/order", strings.NewReader(printed)); got != "the end" {
		t.Errorf("last line %q, want the end", got)
	}
	if got, want := out.String(), "domain/order: LIVED Y at a.go:2:1\ndomain/order: TIMED OUT Z at a.go:3:1\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

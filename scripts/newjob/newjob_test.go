package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
)

const root = "../.."

// project is a copy of what a job needs, with another module path.
func project(t *testing.T, folders ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range folders {
		must(t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(root, folder))))
	}
	for _, file := range []string{"go.mod", "go.sum", "docs/reference/configuration.md"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(read(t, filepath.Join(root, file))), 0o600))
	}
	const module = "example.com/shop"
	replace(t, filepath.Join(dir, "go.mod"), "module "+lambdatest.Module(), "module "+module)
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			replace(t, path, `"`+lambdatest.Module()+`/`, `"`+module+`/`)
		}
		return err
	}))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func replace(t *testing.T, path, before, after string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(strings.ReplaceAll(read(t, path), before, after)), 0o600))
}

// Each kind passes its tests at once, in a project with another module path. With a
// mistake, they fail.
func TestEachKindPassesItsTestsAndFailsWithAMistake(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	dir := project(t, "adapters", "domain", "infra")
	test := func(name string) string {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "./functions/"+name)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	for kind, mistakes := range map[string][][3]string{
		"a": {
			{"job.go", `bound != ""`, `bound == "never"`},
			{"table.go", `#owner = :owner AND #status = :open"`, `#status = :open AND attribute_exists(#owner) OR #owner = :owner"`},
			{"table.go", " AND content = :content", ""},
		},
		"b": {{"table.go", `"attribute_not_exists(id)"`, `"attribute_not_exists(other)"`}},
		"c": {
			{"provider.go", `"Idempotency-Key", reference`, `"Idempotency-Key", reference+time.Now().String()`},
			{"job.go", "o.At.Sub(first) > keyLife", "o.At.Sub(first) > 99*keyLife"},
			{"table.go", `"SET firstSent = :at"`, `"SET lastSent = :at"`},
		},
		"d": {
			{"table.go", "AND attribute_not_exists(#owner)", "AND (leaseUntil < :now OR attribute_not_exists(#owner))"},
			{"job.go", "if noEffect(err)", "if err != nil"},
		},
	} {
		name := "job" + kind
		var out bytes.Buffer
		must(t, run(dir, []string{kind, name}, nil, &out))
		if got := test(name); !strings.HasPrefix(got, "ok") {
			t.Errorf("kind %s: %s", kind, got)
		}
		for _, m := range mistakes {
			path := filepath.Join(dir, "functions", name, m[0])
			right := read(t, path)
			replace(t, path, m[1], m[2])
			if read(t, path) == right {
				t.Errorf("kind %s: no %q in %s", kind, m[1], m[0])
			} else if got := test(name); !strings.Contains(got, "--- FAIL") {
				t.Errorf("kind %s with %q: want its tests to fail, got %s", kind, m[2], got)
			}
			must(t, os.WriteFile(path, []byte(right), 0o600))
		}
	}
}

// Every part of a project may be left out but that of charges.
func TestTheTemplatesNeedNoPartButThatOfCharges(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`(?i)refund|stock|receipt|webhook|reconcil|publish|intake|stripe`)
	must(t, fs.WalkDir(templates, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, path)
		if found := word.Find(text); found != nil {
			t.Errorf("%s: %q", path, found)
		}
		return err
	}))
}

func TestWrongInputWritesNothing(t *testing.T) {
	t.Parallel()
	dir := project(t, "infra")
	must(t, os.MkdirAll(filepath.Join(dir, "functions/there"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "functions/there/job.go"), nil, 0o600))
	before := tree(t, dir)
	for _, tt := range []struct{ dir, kind, name, want string }{
		{dir, "e", "label", "  d  a call that nobody can ask about"},
		{dir, "", "label", `KIND "": want one of these`},
		{dir, "a", "", `NAME "": want 2 to 20`},
		{dir, "a", "my-label", `NAME "my-label": want 2 to 20`},
		{dir, "a", "select", `NAME "select": want`},
		{dir, "a", "order", `NAME "order": taken, see `},
		{dir, "a", "orders", `NAME "orders": taken, see `},
		{dir, "a", "there", "functions/there/job.go: exists"},
		{filepath.Join(dir, "functions"), "a", "label", "run it in the root of the project"},
	} {
		err := run(tt.dir, []string{tt.kind, tt.name}, nil, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q %q: got %v, want %s", tt.kind, tt.name, err, tt.want)
		}
	}
	half := []change{
		{"go.mod", []byte(read(t, dir+"/go.mod")), []byte("other")},
		{path: "new/one.go"},
		{path: "go.mod/two.go"}, // go.mod is not a folder
	}
	if err := write(dir, half); err == nil {
		t.Error("wrote below a file")
	}
	if after := tree(t, dir); after != before {
		t.Errorf("changed the project:\n%s\nwas\n%s", after, before)
	}
}

func TestItAsksForWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	dir := project(t, "infra")
	var out bytes.Buffer
	must(t, run(dir, []string{"", ""}, strings.NewReader("c\nlabel\n"), &out))
	for _, want := range []string{
		"  b  the effect is a write", "NAME: ", "wrote   functions/label/job.go\n", "label.tf\n", "TODO 3",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
	for path, want := range map[string]string{
		"infra/terraform/modules/*/functions.tf": `label += local.label\n(?s:.*)label += local.label_environment\n(?s:.*)label += local.label_statements\n`,
		"infra/terraform/modules/*/variables.tf": `variable "create_label" \{(?s:.*)variable "label_url" \{`,
		"infra/terraform/main.tf":                `create_label += var.create_label\n +label_url += var.label_url\n`,
		"docs/reference/configuration.md":        "`LABEL_URL` \\| required",
	} {
		files, err := filepath.Glob(filepath.Join(dir, path))
		if err != nil || len(files) != 1 || !regexp.MustCompile(want).MatchString(read(t, files[0])) {
			t.Errorf("%s: want %s in %v, %v", path, want, files, err)
		}
	}
}

// tree returns names and sizes of all files.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			b.WriteString(path + " " + strconv.FormatInt(info.Size(), 10) + " " + info.Mode().String() + "\n")
		}
		return err
	}))
	return b.String()
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPackageIsCheckedWithoutItsControls(t *testing.T) {
	for claim, tt := range map[string]struct {
		killed, lived         int // with the controls
		third, fifth, problem string
	}{
		"enough are killed":            {98, 4, "LIVED", "KILLED", ""},
		"too few are killed":           {97, 5, "LIVED", "KILLED", "efficacy 96.0 %, want at least 97 %"},
		"nothing was tested":           {1, 1, "LIVED", "KILLED", "efficacy 0.0 %"},
		"tests fail for another cause": {99, 1, "KILLED", "KILLED", "control mutants are"},
		"other tests were run":         {98, 3, "LIVED", "LIVED", "control mutants are"},
	} {
		text := fmt.Sprintf(`{"mutants_killed":%d,"mutants_lived":%d,"files":[{"file_name":"a/mutation_control.go","mutations":[
			{"type":"ARITHMETIC_BASE","status":%q,"line":3},{"type":"ARITHMETIC_BASE","status":%q,"line":5}]}]}`,
			tt.killed, tt.lived, tt.third, tt.fifth)
		r, err := parseReport([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.check("a"); (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: got %v, want %q", claim, err, tt.problem)
		}
	}
	if r, err := parseReport([]byte(`{"mutants_killed":9}`)); err != nil || r.check("a") == nil {
		t.Errorf("got %v and no problem without controls, want one", err)
	}
}

func TestTheCopyHasTheSourcesAndTheControls(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "module")
	for name, text := range map[string]string{
		".gitignore": "build\n", "a/a_test.go": "package a_test\n", "a/a.go": "// Command a.\npackage main\n", "build/x": "x",
	} {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := exec.CommandContext(t.Context(), "git", "init", "-q", from).Run(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(copyModule(t.Context(), from, to), prepare(to, "a")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"a/a.go": "// Command a.\npackage a\n", "a/a_test.go": "package a_test\n", "a/" + control: "package a\n",
		"a/" + controlTest: "package a\n", "build/x": "",
	} {
		if got, _ := os.ReadFile(filepath.Join(to, file)); !strings.HasPrefix(string(got), want) || want == "" && got != nil {
			t.Errorf("%s begins with %q, want %q", file, got, want)
		}
	}
	if err := prepare(to, "nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want ErrNotExist", err)
	}
}

func TestProgressShowsSurvivorsAndKeepsTheLastLine(t *testing.T) {
	var out bytes.Buffer
	printed := "Starting...\n      KILLED X at a.go:1:1\n       LIVED Y at a.go:2:1\n" +
		"   TIMED OUT Z at a.go:3:1\n      LIVED C at mutation_control.go:3:1\n" +
		" NOT COVERED X at a.go:4:1\nthe end\n"
	if got := follow("domain/order", strings.NewReader(printed), &out); got != "the end" {
		t.Errorf("last line %q, want the end", got)
	}
	if got, want := out.String(), "domain/order: LIVED Y at a.go:2:1\ndomain/order: TIMED OUT Z at a.go:3:1\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

package gocut_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"orderonce/scripts/take/gocut"
)

func mentions(text string) bool { return strings.Contains(strings.ToLower(text), "refund") }

// cut writes the files of an archive below a new folder, cuts, and returns what is left.
func cut(t *testing.T, archive string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	a := txtar.Parse([]byte("-- go.mod --\nmodule shop\n\ngo 1.26.0\n" + archive))
	for _, f := range a.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := gocut.Cut(t.Context(), dir, gocut.Options{
		Mentions: mentions, Names: func(string) bool { return false }, Drop: mentions, Modules: []string{"."}, Progress: io.Discard,
	})
	var left txtar.Archive
	walk := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		left.Files = append(left.Files, txtar.File{Name: filepath.ToSlash(path[len(dir)+1:]), Data: text})
		return err
	})
	if walk != nil {
		t.Fatal(walk)
	}
	return string(txtar.Format(&left)), err
}

func TestEachMentionGoesWithItsSmallestUnit(t *testing.T) {
	before, err := os.ReadFile("testdata/before.txtar")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/after.txtar")
	if err != nil {
		t.Fatal(err)
	}
	got, err := cut(t, string(before))
	if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
		t.Errorf("got error %v, and (-want +got)\n%s", err, diff)
	}
}

func TestCutRefusesWhatHasNoUnit(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"a text that the program needs": {
			`func f() error { return errors.New("no refund") }`,
			`8: cannot cut a text in a call: "no refund"`,
		},
		"a field that stays": {
			"type s struct{ Name string }\n\nvar _ = s{Name: refundName}\n\nconst refundName = \"a\"\n",
			"10: cannot cut the value of the field Name, which stays",
		},
		"the last return": {
			"func f() error {\n\treturn refund()\n}\n\nfunc refund() error { return nil }",
			"9: cannot cut the last return of a function",
		},
		"what an exported name is": {"// F makes a refund.\nfunc F() {}", "8: cannot cut the sentence that says what F is"},
		"a case that is always true": {
			"var refunded = 0\n\nfunc f() {\n\tswitch {\n\tcase refunded == 0:\n\t\tpanic(1)\n\t}\n}",
			"12: cannot cut a case that is always true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			const head = "-- a/a.go --\npackage a\n\nimport (\n\t\"errors\"\n)\n\nvar _ = errors.New\n"
			_, err := cut(t, head+tt.body)
			if err == nil || err.Error() != "a/a.go:"+tt.want {
				t.Errorf("got %v, want a/a.go:%s", err, tt.want)
			}
		})
	}
}

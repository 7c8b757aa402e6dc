package dynamodbtest_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

// recorder records how a test ends, and continues.
type recorder struct {
	testing.TB

	skipped, failed string
}

func (*recorder) Helper() {}

func (w *recorder) Skip(args ...any) { w.skipped = fmt.Sprint(args...) }

func (w *recorder) Fatal(args ...any) { w.failed = fmt.Sprint(args...) }

func TestLocate(t *testing.T) {
	module := t.TempDir()
	write(t, filepath.Join(module, "go.mod"), 0o600)
	for name, tt := range map[string]struct {
		env   map[string]string
		dir   string
		skips string
		fails string
	}{
		"a test without an engine is skipped with instructions": {dir: module, skips: "make engine"},
		"it fails if an engine is required": {
			dir: module, env: map[string]string{"ORDERONCE_ALL": "1"}, fails: "make engine",
		},
		"it fails in CI": {dir: module, env: map[string]string{"CI": "true"}, fails: "make engine"},
		"a failed search is not a missing engine": {dir: t.TempDir(), fails: "module root above"},
		"a test with an engine runs":              {dir: module, env: map[string]string{"DYNAMODB_ENDPOINT": "http://127.0.0.1:8000"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &recorder{}
			got := dynamodbtest.LocateFrom(w, func(name string) string { return tt.env[name] }, tt.dir)
			if !strings.Contains(w.skipped, tt.skips) || (w.skipped == "") != (tt.skips == "") {
				t.Errorf("skipped with %q, want %q", w.skipped, tt.skips)
			}
			if !strings.Contains(w.failed, tt.fails) || (w.failed == "") != (tt.fails == "") {
				t.Errorf("failed with %q, want %q", w.failed, tt.fails)
			}
			if want := tt.env["DYNAMODB_ENDPOINT"]; got.Endpoint != want {
				t.Errorf("located %q, want %q", got.Endpoint, want)
			}
		})
	}
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

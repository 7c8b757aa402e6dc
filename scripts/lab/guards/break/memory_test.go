package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/scripts/lab/guards"
	"orderonce/scripts/local/system/systemtest"
)

// memory remembers in build/guards which planted bugs were caught, each under a hash of
// its patch, its catcher's sources and the version of Go. It never remembers a bug that
// was not caught.
type memory struct {
	root    string
	sources map[string]string // hashes by package, all known once caught returns
}

// sources returns a hash of every file that a package's tests can depend on: the folders
// of the packages that they import, and all functions if they compile programs.
func sources(ctx context.Context, root, module, pkg string) (string, error) {
	list := func(dir string, of ...string) (all []string, err error) {
		args := append([]string{"list", "-deps", "-test", "-f", "{{if not .Standard}}{{.Dir}}{{end}}"}, of...)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		return strings.Fields(string(out)), err
	}
	all, err := list(module, pkg)
	if err != nil {
		return "", fmt.Errorf("sources of %s: %w", pkg, err)
	}
	for _, dir := range all {
		if product, compiles := strings.CutSuffix(filepath.ToSlash(dir), "/adapters/lambda/lambdatest"); compiles {
			more, err := list(product, "./functions/...")
			if err != nil {
				return "", err
			}
			all = append(all, more...)
		}
	}
	slices.Sort(all)
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, _ = hash.Write(sums)
	for _, dir := range slices.Compact(all) {
		inside, own := strings.CutPrefix(dir, root)
		if !own {
			fmt.Fprintln(hash, filepath.Base(filepath.Dir(dir)), filepath.Base(dir)) // its version is in go.sum
			continue
		}
		fmt.Fprintln(hash, inside)
		if err := addFiles(hash, dir); err != nil {
			return "", err
		}
	}
	return string(hash.Sum(nil)), nil
}

func addFiles(to io.Writer, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && e.Name() == "testdata":
			if err := addFiles(to, path); err != nil {
				return err
			}
		case e.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(to, e.Name(), len(text))
			_, _ = to.Write(text)
		}
	}
	return nil
}

func (m memory) key(t *testing.T, g guards.Guard) string {
	t.Helper()
	if m.sources[g.Catcher.Pkg] == "" {
		module, pkg := g.Catcher.Module(m.root)
		hash, err := sources(t.Context(), m.root, module, pkg)
		systemtest.Must(t, err)
		m.sources[g.Catcher.Pkg] = hash
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(runtime.Version()+m.sources[g.Catcher.Pkg]+content(t, g.Patch))))
}

func (m memory) path(g guards.Guard) string { return filepath.Join(m.root, "build", "guards", g.Name) }

// caught returns the bugs that need not run: nothing has changed since they were caught.
// The tenth of them that was caught longest ago runs nevertheless.
func (m memory) caught(t *testing.T, all []guards.Guard) (names []string) {
	t.Helper()
	at := map[string]time.Time{}
	for _, g := range all {
		key := m.key(t, g)
		text, err := os.ReadFile(m.path(g))
		info, statErr := os.Stat(m.path(g))
		if err == nil && statErr == nil && string(text) == key {
			names, at[g.Name] = append(names, g.Name), info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(at[a].Compare(at[b]), cmp.Compare(a, b)) })
	return names[(len(names)+9)/10:]
}

func (m memory) note(t *testing.T, g guards.Guard) {
	t.Helper()
	systemtest.Must(t, os.MkdirAll(filepath.Dir(m.path(g)), 0o750))
	systemtest.Must(t, os.WriteFile(m.path(g), []byte(m.key(t, g)), 0o600))
}

func TestABugIsRememberedUntilItsPatchOrItsCatcherChanges(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		systemtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	catcher := guards.Catcher{Test: "TestX", Pkg: "."}
	bugs := make([]guards.Guard, 10) // one of ten runs again
	for i := range bugs {
		bugs[i] = guards.Guard{Name: fmt.Sprintf("bug-%d", i), Patch: filepath.Join(dir, "patches", "bug"), Catcher: catcher}
	}
	systemtest.Must(t, os.Mkdir(filepath.Join(dir, "patches"), 0o700))
	write("go.mod", "module m\n")
	write("go.sum", "")
	write("a_test.go", "package m\n")
	for _, step := range []struct {
		name, text string
		caught     int
	}{
		{"patches/bug", "one", 0},
		{"patches/unread", "", 9},
		{"patches/bug", "two", 0},
		{"a_test.go", "package m // changed\n", 0},
		{"go.sum", "\n", 0},
		{"patches/unread", "", 9},
	} {
		write(step.name, step.text)
		m := memory{dir, map[string]string{}}
		if got := m.caught(t, bugs); len(got) != step.caught {
			t.Errorf("after %s: got %q, want %d", step.name, got, step.caught)
		}
		for _, g := range bugs {
			m.note(t, g)
		}
	}
}

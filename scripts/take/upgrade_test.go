package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newShop makes a project of a clone.
func newShop(t *testing.T, s *session) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "shop")
	must(t, newProject{Module: "github.com/acme/shop", Dir: dir}.Run(s))
	for _, pair := range [][]string{{"user.name", "a"}, {"user.email", "a@localhost"}} {
		_, err := git(t.Context(), dir, "config", pair[0], pair[1])
		must(t, err)
	}
	return dir
}

// edit replaces text in a file, and commits.
func edit(t *testing.T, dir, name, from, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	must(t, err)
	changed := strings.Replace(string(data), from, to, 1)
	if changed == string(data) {
		t.Fatalf("%s has no %q", name, from)
	}
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(changed), 0o600))
	commit(t, dir)
}

// release is a later version of the clone: it renames a file, changes a condition and
// adds a variable.
func release(t *testing.T, root string) {
	t.Helper()
	edit(t, root, versionFile, "0.1.0", "0.2.0")
	edit(t, root, "infra/pay.tf", "count = 1", "count = var.many ? 2 : 1")
	edit(t, root, "infra/pay.tf", "\n}", "\n}\n\nvariable \"many\" {}")
	edit(t, root, "CHANGELOG.md", "## [0.1.0]", "## [0.2.0]\n\n- Payments are limits.\n\n## [0.1.0]")
	_, err := git(t.Context(), root, "mv", "domain/order/pay.go", "domain/order/limit.go")
	must(t, err)
	commit(t, root)
}

func TestAnUpgradeKeepsLocalChanges(t *testing.T) {
	t.Parallel()
	for claim, prepare := range map[string]func(t *testing.T, dir string) string{
		"in the repository that make new made": func(_ *testing.T, dir string) string { return dir },
		"in a clone of it": func(t *testing.T, dir string) string {
			t.Helper()
			other := filepath.Join(t.TempDir(), "other")
			_, err := git(t.Context(), dir, "clone", "-q", dir, other)
			must(t, err)
			return other
		},
		"in a history that was squashed": func(t *testing.T, dir string) string {
			t.Helper()
			for _, args := range [][]string{{"checkout", "-q", "--orphan", "new"}, {"branch", "-D", "main", "payonce"}} {
				_, err := git(t.Context(), dir, args...)
				must(t, err)
			}
			commit(t, dir)
			return dir
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s, out := clone(t)
			dir := newShop(t, s)
			edit(t, dir, "domain/order/pay.go", "100", "250")
			edit(t, dir, "README.md", "Go, on AWS", "Go, by Acme, on AWS")
			dir = prepare(t, dir)
			release(t, s.root)
			s.again = func(clone, dir string, p project) error {
				earlier := *s
				earlier.root = clone
				return newProject{p.Module, dir, p.Parts}.Run(&earlier)
			}
			must(t, upgrade{Project: dir}.Run(s))
			for name, want := range map[string]string{
				"domain/order/limit.go": "Limit = 250",
				"README.md":             "Go, by Acme, on AWS",
				"infra/pay.tf":          "count = var.many ? 2 : 1\n}\n\nvariable \"many\"",
				rememberFile:            `"version": "0.2.0"`,
			} {
				if got, err := os.ReadFile(filepath.Join(dir, name)); !strings.Contains(string(got), want) {
					t.Errorf("%s: got %q, %v, want %q in it", name, got, err, want)
				}
			}
			if !strings.Contains(out.String(), "## [0.2.0]\n\n- Payments are limits.\n") || strings.Contains(out.String(), "[0.1.0]") {
				t.Errorf("got %s, want the section of 0.2.0", out)
			}
		})
	}
}

func TestAClashIsAnOrdinaryConflict(t *testing.T) {
	t.Parallel()
	s, _ := clone(t)
	dir := newShop(t, s)
	edit(t, dir, "infra/pay.tf", "count = 1", "count = 3")
	release(t, s.root)
	err := upgrade{Project: dir}.Run(s)
	if err == nil || !strings.Contains(err.Error(), "infra/pay.tf\n") {
		t.Errorf("got %v, want the file in conflict", err)
	}
	got, _ := os.ReadFile(filepath.Join(dir, "infra/pay.tf"))
	for _, want := range []string{"<<<<<<< HEAD\n  count = 3\n", "count = var.many ? 2 : 1\n>>>>>>> payonce\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("got %s, want %q in it", got, want)
		}
	}
}

func TestAnUpgradeAddsAndRemovesParts(t *testing.T) {
	t.Parallel()
	s, _ := clone(t)
	dir := newShop(t, s)
	refund := filepath.Join(dir, "domain/refund/refund.go")
	for _, parts := range [][]string{{"charge", "refund"}, {"charge"}} {
		must(t, upgrade{Project: dir, Parts: parts}.Run(s))
		if _, err := os.Stat(refund); (err == nil) != (len(parts) == 2) {
			t.Errorf("with %v: %v", parts, err)
		}
	}
}

func TestAnUpgradeRefusesWhatWouldLoseSomething(t *testing.T) {
	t.Parallel()
	s, _ := clone(t)
	for want, damage := range map[string]func(dir string){
		"not committed":      func(dir string) { must(t, os.WriteFile(filepath.Join(dir, "own.txt"), nil, 0o600)) },
		"has no .orderonce":  func(dir string) { must(t, os.Remove(filepath.Join(dir, rememberFile))) },
		`unknown part "old"`: func(dir string) { edit(t, dir, rememberFile, `"charge"`, `"charge", "old"`) },
		"earlier version":    func(dir string) { edit(t, dir, rememberFile, "0.1.0", "0.3.0") },
		"has payonce 0.1.0":  func(string) {},
		"unknown field":      func(dir string) { edit(t, dir, rememberFile, `"parts"`, `"partz"`) },
		"root of a git":      func(dir string) { must(t, os.RemoveAll(filepath.Join(dir, ".git"))) },
	} {
		dir := newShop(t, s)
		damage(dir)
		before, _ := git(t.Context(), dir, "for-each-ref")
		if err := (upgrade{Project: dir}).Run(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if after, _ := git(t.Context(), dir, "for-each-ref"); after != before {
			t.Errorf("%s: branches moved from %s to %s", want, before, after)
		}
	}
}

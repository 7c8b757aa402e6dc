package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clone returns a session in a clone of a small product, with parts.hcl and a script that
// is executable.
func clone(t *testing.T) (*session, *strings.Builder) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "clone")
	files := tree{}
	for name, text := range map[string]string{
		"go.mod":              "module example.com/payonce\n\ngo 1.26.0\n",
		versionFile:           "package config\n\nconst Version = \"0.1.0\"\n",
		"domain/order/pay.go": "package order\n\n// Limit is the most that is paid.\nconst Limit = 100\n",
		"functions/order/main.go": "package main\n\nimport \"example.com/payonce/domain/order\"\n\n" +
			"func main() { println(\"payonce\", order.Limit) }\n",
		"domain/refund/refund.go": "package refund\n",
		"infra/pay.tf":            "resource \"pay\" \"one\" {\n  count = 1\n}\n",
		"CHANGELOG.md":            "# Changelog\n\n## [0.1.0]\n\n- All.\n",
		"README.md":               "# payonce\n\nOrders.\n",
		"docs/README.md":          "# Documents\n\n[Rules](../AGENTS.md).\n",
		"AGENTS.md":               "# Rules\n\nNone.\n",
		".ci/run":                 "#!/bin/sh\nPAYONCE_ALL=1 make test\n",
		"Makefile":                "run: # refunds don't start\n\ttest ! -d domain/re*nd\n",
		partsFile: `default = ["charge"]
			part "charge" {}
			part "refund" {
			  needs = ["charge"]
			  words = ["refund"]
			}
			never "origin" { paths = ["scripts/take/**"] }`,
	} {
		files[name] = file{0o644, []byte(text)}
	}
	files[".ci/run"] = file{0o755, files[".ci/run"].data}
	files["docs.md"] = file{fs.ModeSymlink, []byte("README.md")}
	must(t, files.write(root))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}} {
		_, err := git(t.Context(), root, args...)
		must(t, err)
	}
	commit(t, root)
	var out strings.Builder
	return &session{ctx: t.Context(), root: root, out: &out, since: func() time.Duration { return 0 }}, &out
}

func commit(t *testing.T, dir string) {
	t.Helper()
	_, err := git(t.Context(), dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qam", "change")
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAProjectHasItsOwnNamesAndOnlyItsParts(t *testing.T) {
	t.Parallel()
	s, out := clone(t)
	dir := filepath.Join(t.TempDir(), "shop")
	must(t, newProject{Module: "github.com/acme/web-shop", Dir: dir}.Run(s))
	for name, want := range map[string]string{
		"go.mod":                  "module github.com/acme/web-shop",
		"functions/order/main.go": `"github.com/acme/web-shop/domain/order"`,
		".ci/run":                 "WEB_SHOP_ALL=1",
		"docs.md":                 "# web-shop",
		rememberFile:              `"version": "0.1.0"`,
		versionFile:               `const Version = "0.0.0"`,
		"CHANGELOG.md":            "## [Unreleased]\n\n- Taken from payonce.\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); !strings.Contains(string(got), want) {
			t.Errorf("%s: got %q, %v, want %q in it", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		".ci/run": "-rwxr-xr-x", "go.mod": "-rw-r--r--", "docs.md": "Lrwxrwxrwx", "domain/refund": "", partsFile: "",
	} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().String() != want || err != nil && want != "" {
			t.Errorf("%s: got %v, %v, want mode %q", name, info, err, want)
		}
	}
	branches, err := git(t.Context(), dir, "for-each-ref", "--format=%(refname:short) %(objectname)")
	must(t, err)
	head, err := git(t.Context(), dir, "rev-parse", "HEAD")
	must(t, err)
	if want := fmt.Sprintf("main %s\npayonce %s", head, head); branches != want {
		t.Errorf("branches: got %q, want %q", branches, want)
	}
	if status, err := git(t.Context(), dir, "status", "--porcelain"); err != nil || status != "" {
		t.Errorf("git status: got %q, %v, want nothing", status, err)
	}
	if !strings.Contains(out.String(), "make run") {
		t.Errorf("got %s, want what to do next", out)
	}
}

func TestAProjectWithWhatIsNotItsOwnIsNotMade(t *testing.T) {
	t.Parallel()
	for want, damage := range map[string]func(root string) error{
		`old.md:1: "refund" in ./refund`: func(root string) error {
			return os.Symlink("./refund/../README.md", filepath.Join(root, "old.md"))
		},
		"docs/name.md: names payonce": func(root string) error {
			return os.WriteFile(filepath.Join(root, "docs/name.md"), []byte("# PayOnce\n"), 0o600)
		},
		"README.md:26: AGENTS.md": func(root string) error { return os.Remove(filepath.Join(root, "AGENTS.md")) },
	} {
		s, _ := clone(t)
		must(t, damage(s.root))
		_, err := git(t.Context(), s.root, "add", "-A")
		must(t, err)
		dir := filepath.Join(t.TempDir(), "shop")
		err = newProject{Module: "github.com/acme/shop", Dir: dir}.Run(s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the project was made all the same", want)
		}
	}
}

func TestWhatCannotBeDoneIsSaidBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	s, _ := clone(t)
	parent := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(parent, "full", "src"), 0o755))
	for want, n := range map[string]newProject{
		`module path "a b"`:              {Module: "a b", Dir: "new"},
		`invalid char 'ö'`:               {Module: "github.com/acme/Shöp", Dir: "new"},
		`"1shop" must match`:             {Module: "github.com/acme/1shop", Dir: "new"},
		`unknown part "refnd": the part`: {Module: "github.com/acme/shop", Dir: "new", Parts: []string{"charge", "refnd"}},
		`part refund needs charge`:       {Module: "github.com/acme/shop", Dir: "new", Parts: []string{"refund"}},
		`full is not empty: it has src`:  {Module: "github.com/acme/shop", Dir: "full"},
		`make its parent first`:          {Module: "github.com/acme/shop", Dir: "no/parent"},
		`is in the clone`:                {Module: "github.com/acme/shop", Dir: filepath.Join(s.root, "shop")},
		`want --module and --dir`:        {Module: "github.com/acme/shop"},
	} {
		if n.Dir != "" && !filepath.IsAbs(n.Dir) {
			n.Dir = filepath.Join(parent, n.Dir)
		}
		if err := n.Run(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", n, err, want)
		}
	}
	entries, err := os.ReadDir(parent)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

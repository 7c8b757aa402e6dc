package release_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/scripts/package/release"
)

func TestTheVersionIsTheNewestInTheChangelog(t *testing.T) {
	t.Parallel()
	if newest := release.Newest(source(t, "CHANGELOG.md")); newest != config.Version {
		t.Errorf("CHANGELOG.md has %s at the top, and adapters/config/version.go %s", newest, config.Version)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	const one, two = "## [1.0.0] - 2026-11-24\n\n- [One](docs/one.md).\n", "## [1.1.0] - 2026-12-01\n\n- Two.\n\n"
	for _, tt := range []struct{ name, changelog, version, tag, want string }{
		{"the newest of two", "# Changelog\n\n## [Unreleased]\n\n- Soon.\n\n" + two + one, "1.1.0", "v1.1.0", "- Two.\n"},
		{"links from elsewhere", "# Changelog\n\n" + one, "1.0.0", "v1.0.0", "- [One](https://example.com/docs/one.md).\n"},
		{"another tag", one, "1.0.0", "v1.0.1", ""},
		{"another version", two + one, "1.0.0", "v1.0.0", ""},
		{"a section without its date", "## [1.0.0]\n", "1.0.0", "v1.0.0", ""},
		{"nothing released yet", "## [Unreleased]\n", "0.0.0", "v0.0.0", ""},
	} {
		got, err := release.Notes(tt.changelog, tt.version, tt.tag, "https://example.com")
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %q and error %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// An action that a tag names can change after it was read.
func TestEveryActionIsPinnedAndEveryTargetExists(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../.github/workflows/*.yml")
	must(t, err)
	makefile := source(t, "Makefile")
	pinned := regexp.MustCompile(`^([\w-]+/)+[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$|^\./`)
	for _, file := range files {
		name := filepath.Join(".github/workflows", filepath.Base(file))
		text := source(t, name)
		for _, use := range regexp.MustCompile(`uses: (.+)`).FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(use[1]) {
				t.Errorf("%s uses %q, want a commit of 40 digits, and its version in a comment", name, use[1])
			}
		}
		for _, target := range regexp.MustCompile(`(?m)^[^#\n]*\bmake (?:-s )?([a-z-]+)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+target[1]+":") {
				t.Errorf("%s calls make %s, which the Makefile does not have", name, target[1])
			}
		}
		if n := strings.Count(text, "persist-credentials: false"); n != strings.Count(text, "uses: actions/checkout@") {
			t.Errorf("%s: %d checkouts leave no token behind, want each", name, n)
		}
		if !strings.Contains(text, "\npermissions: {contents: read}\n") {
			t.Errorf("%s: want permissions: {contents: read} for what says nothing else", name)
		}
		var more []string
		for _, permission := range regexp.MustCompile(`(?m)^\s+([a-z-]+: write)\b`).FindAllStringSubmatch(text, -1) {
			more = append(more, permission[1])
		}
		want := map[string][]string{"release.yml": {"contents: write", "id-token: write", "attestations: write"}}
		if diff := cmp.Diff(more, want[filepath.Base(file)]); diff != "" {
			t.Errorf("%s may write (-got +want):\n%s", name, diff)
		}
	}
}

// source returns a file of the repository.
func source(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", name))
	must(t, err)
	return string(text)
}

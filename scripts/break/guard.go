package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// bugs is where the patches are, below the module's root.
const bugs = "scripts/prove/bugs"

// guard is one thing of the product that keeps a promise, and the patch that takes it away.
type guard struct {
	name    string // of the patch, without its extension
	says    string // what is taken away, and why people do that
	promise string // the invariant of docs/design.md that breaks
	catcher catcher
	worlds  string // how many random worlds may be needed at most; "" if the search catches it
	patch   string // its path
	diff    string
}

// catcher is the test that notices what a patch takes away.
type catcher struct {
	test  string
	claim string // the subtest that has to fail, in words; "" if the test has none
	pkg   string // as go test takes it
}

// search is what catches most patches: it names the broken invariant itself, and tells the shortest history.
func search() catcher { return catcher{test: "TestScenario", pkg: "./scripts/prove"} }

// random is the same for what takes more than one or two things to go wrong.
func random() catcher { return catcher{test: "TestWorlds", pkg: "./scripts/prove"} }

// tells reports whether the catcher names the broken invariant itself.
func (c catcher) tells() bool { return c == search() || c == random() }

func (c catcher) String() string {
	if c.claim == "" {
		return c.test + " in " + c.pkg
	}
	return fmt.Sprintf("%s %q in %s", c.test, c.claim, c.pkg)
}

// path is the name of the test that has to fail, as package testing writes it.
func (c catcher) path() string {
	if c.claim == "" {
		return c.test
	}
	return c.test + "/" + strings.ReplaceAll(c.claim, " ", "_")
}

// pattern runs this test alone.
func (c catcher) pattern() string {
	levels := strings.Split(c.path(), "/")
	for i, l := range levels {
		levels[i] = "^" + regexp.QuoteMeta(l) + "$"
	}
	return strings.Join(levels, "/")
}

// readGuards reads every patch of a folder, in the order of their names.
func readGuards(dir string) ([]guard, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	all := make([]guard, len(paths))
	for i, p := range paths {
		text, err := os.ReadFile(p) //nolint:gosec // G304: a patch of this module
		if err != nil {
			return nil, err
		}
		if all[i], err = parseGuard(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		all[i].name, all[i].patch = strings.TrimSuffix(filepath.Base(p), ".patch"), p
	}
	return all, nil
}

// parseGuard reads the two comment lines before a diff. The second one is "# caught by: I1", or with random worlds instead
// of the search "# caught by: I1, within 10000 worlds", or with another test
// `# caught by: I1, by TestStore "bind of another intent is fenced" in ./adapters/dynamodb`.
func parseGuard(text string) (guard, error) {
	header := regexp.MustCompile(`^# (.+)\n# caught by: (I\d+)` +
		`(?:, within (\d+) worlds|, by (Test\w+)(?: "([^"]+)")? in (\./\S+))?\n(--- (?s:.*))$`)
	m := header.FindStringSubmatch(text)
	if m == nil {
		return guard{}, errors.New(`want "# what is taken away", "# caught by: I1" (and where, if not by the search), and a diff`)
	}
	g := guard{says: m[1], promise: m[2], worlds: m[3], catcher: catcher{m[4], m[5], m[6]}, diff: m[7]}
	switch {
	case g.worlds != "":
		g.catcher = random()
	case g.catcher.test == "":
		g.catcher = search()
	}
	return g, nil
}

// changes is the diff without what only git needs.
func (g guard) changes() string {
	var b strings.Builder
	for line := range strings.Lines(g.diff) {
		path, file := strings.CutPrefix(line, "+++ b/")
		switch {
		case strings.HasPrefix(line, "--- "):
		case file:
			b.WriteString("    " + path)
		case strings.HasPrefix(line, "@@ "):
			b.WriteString("    ...\n")
		default:
			b.WriteString("    " + line)
		}
	}
	return b.String()
}

// file is one that a patch changes, or adds: a call that the product does not make needs a place.
type file struct {
	path  string // with slashes, relative to the module's root
	added bool
}

func (g guard) files() (all []file) {
	added := false
	for line := range strings.Lines(g.diff) {
		if from, ok := strings.CutPrefix(line, "--- "); ok {
			added = from == "/dev/null\n"
		}
		if path, ok := strings.CutPrefix(line, "+++ b/"); ok {
			all = append(all, file{strings.TrimSpace(path), added})
		}
	}
	return all
}

// Package guards reads the patches in guards/patches. Each patch removes one guard of the
// product. A patch is never applied to the tree: it changes copies, and an overlay makes
// the go command compile those. The package does not know what happens without a guard;
// the test that a patch names, and the storm, find that out.
package guards

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Guard is one thing of the product that keeps a promise, and the patch that takes it
// away.
type Guard struct {
	Name    string // of the patch, without its extension
	Says    string // what is taken away, and why people do that
	Promise string // the invariant of docs/design.md that breaks
	Catcher Catcher
	Worlds  string // how many random worlds may be needed at most; "" if the search catches it
	Needs   string // the kinds of trouble that its shortest story needs, with "; " between them; "" if no world sees it
	Patch   string // its path
	Diff    string // of unified form, as git apply takes it
}

// Catcher is the test that notices what a patch takes away.
type Catcher struct {
	Test  string
	Claim string // the subtest that has to fail, in words; "" if the test has none
	Pkg   string // as go test takes it
}

// lab is the folder of the lab's module, relative to the product's.
const lab = "scripts/lab"

// Module returns the folder of the module that has the catcher's package, and the package
// relative to it.
func (c Catcher) Module(root string) (dir, pkg string) {
	if inLab, ok := strings.CutPrefix(c.Pkg, "./"+lab+"/"); ok {
		return filepath.Join(root, lab), "./" + inLab
	}
	return root, c.Pkg
}

// Search is what catches most patches: it names the broken invariant itself, and tells
// the shortest history.
func Search() Catcher { return Catcher{Test: "TestScenario", Pkg: "./scripts/lab/simulation"} }

// Random is the same for what takes more than one or two things to go wrong.
func Random() Catcher { return Catcher{Test: "TestWorlds", Pkg: "./scripts/lab/simulation"} }

// Tells reports whether the catcher names the broken invariant itself.
func (c Catcher) Tells() bool { return c == Search() || c == Random() }

// String is the test as people look for it, such as `TestStore "bind of another intent is
// fenced" in ./adapters/dynamodb`.
func (c Catcher) String() string {
	if c.Claim == "" {
		return c.Test + " in " + c.Pkg
	}
	return fmt.Sprintf("%s %q in %s", c.Test, c.Claim, c.Pkg)
}

// Path is the name of the test that has to fail, as package testing writes it.
func (c Catcher) Path() string {
	if c.Claim == "" {
		return c.Test
	}
	return c.Test + "/" + strings.ReplaceAll(c.Claim, " ", "_")
}

// Pattern makes go test -run run this test alone.
func (c Catcher) Pattern() string {
	levels := strings.Split(c.Path(), "/")
	for i, l := range levels {
		levels[i] = "^" + regexp.QuoteMeta(l) + "$"
	}
	return strings.Join(levels, "/")
}

// CaughtBy tells what notices that the guard is missing, in the words of the patch.
func (g Guard) CaughtBy() string {
	switch g.Catcher {
	case Search():
		return g.Promise
	case Random():
		return g.Promise + ", within " + g.Worlds + " worlds"
	}
	return g.Promise + ", by " + g.Catcher.String()
}

// ErrUnknown says that no patch has the name that was asked for.
var ErrUnknown = errors.New("no guard has this name; make break lists them")

// Root returns the root folder of the product's module, also for a caller in the lab's
// module.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "orderonce").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return "", fmt.Errorf("go list -m orderonce: %w: run this inside the repository",
			cmp.Or(err, os.ErrNotExist))
	}
	return root, nil
}

// All reads the patches of the module at root, in the order of their names.
func All(root string) ([]Guard, error) {
	paths, err := filepath.Glob(filepath.Join(root, lab, "guards", "patches", "*.patch"))
	if err != nil {
		return nil, err
	}
	all := make([]Guard, len(paths))
	for i, p := range paths {
		text, err := os.ReadFile(p) //nolint:gosec // G304: a patch of this module
		if err != nil {
			return nil, err
		}
		if all[i], err = Parse(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		all[i].Name, all[i].Patch = strings.TrimSuffix(filepath.Base(p), ".patch"), p
	}
	return all, nil
}

// Find returns one guard of the module at root, or ErrUnknown.
func Find(root, name string) (Guard, error) {
	all, err := All(root)
	if err != nil {
		return Guard{}, err
	}
	for _, g := range all {
		if g.Name == name {
			return g, nil
		}
	}
	return Guard{}, fmt.Errorf("%q: %w", name, ErrUnknown)
}

// Parse reads the comment lines before a diff. The second one is "# caught by: I1", or
// with random worlds instead of the search "# caught by: I1, within 10000 worlds", or
// with another test `# caught by: I1, by TestStore "bind of another intent is fenced" in
// ./adapters/dynamodb`. If worlds catch it, the third one is "# needs: 429; a declined
// card": the kinds of trouble in the shortest story. break --update writes it.
func Parse(text string) (Guard, error) {
	header := regexp.MustCompile(`^# (.+)\n# caught by: (I\d+)` +
		`(?:, within (\d+) worlds|, by (Test\w+)(?: "([^"]+)")? in (\./\S+))?\n(?:# needs: (.+)\n)?(--- (?s:.*))$`)
	m := header.FindStringSubmatch(text)
	if m == nil {
		return Guard{}, errors.New(
			`want "# what is taken away", "# caught by: I1" (and where, if not by the search), ` +
				`"# needs: 429" if worlds catch it, and a diff`,
		)
	}
	g := Guard{
		Says:    m[1],
		Promise: m[2],
		Worlds:  m[3],
		Catcher: Catcher{m[4], m[5], m[6]},
		Needs:   m[7],
		Diff:    m[8],
	}
	if g.Needs != "" && g.Catcher.Test != "" {
		return Guard{}, fmt.Errorf("want no needs beside %s: they are of stories", g.Catcher)
	}
	switch {
	case g.Worlds != "":
		g.Catcher = Random()
	case g.Catcher.Test == "":
		g.Catcher = Search()
	}
	return g, nil
}

// Update writes into the patch which kinds of trouble it needs.
func (g Guard) Update(needs string) error {
	text, err := os.ReadFile(g.Patch)
	if err != nil {
		return err
	}
	lines := regexp.MustCompile(`(# caught by: .+\n)(?:# needs: .+\n)?`)
	updated := lines.ReplaceAllString(string(text), "${1}# needs: "+needs+"\n")
	return os.WriteFile(g.Patch, []byte(updated), 0o600) //nolint:gosec // G703: a patch of this module
}

// Changes is the diff without what only git needs, indented.
func (g Guard) Changes() string {
	var b strings.Builder
	for line := range strings.Lines(g.Diff) {
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

// File is one that a patch changes, or adds: a call that the product does not make needs
// a place.
type File struct {
	Path  string // with slashes, relative to the module's root
	Added bool
}

// Files are what the patch changes and adds, in its order.
func (g Guard) Files() (all []File) {
	added := false
	for line := range strings.Lines(g.Diff) {
		if from, ok := strings.CutPrefix(line, "--- "); ok {
			added = from == "/dev/null\n"
		}
		if path, ok := strings.CutPrefix(line, "+++ b/"); ok {
			all = append(all, File{strings.TrimSpace(path), added})
		}
	}
	return all
}

// TakeAway applies the patch to copies below dir, and returns the overlay that makes the
// go command compile those in the place of the module's own files. Dir is the caller's,
// and empty. An error says that the patch does not apply any more.
func (g Guard) TakeAway(ctx context.Context, root, dir string) (overlay string, err error) {
	replace := map[string]string{}
	for _, f := range g.Files() {
		from, to := filepath.Join(root, f.Path), filepath.Join(dir, f.Path)
		replace[from] = to
		if f.Added {
			continue
		}
		if err := copyFile(from, to); err != nil {
			return "", fmt.Errorf("the patch %s does not apply any more: %w", g.Name, err)
		}
	}
	cmd := exec.CommandContext(ctx, "git", "apply", g.Patch) //nolint:gosec // G204: the path is our own
	cmd.Dir = dir
	// Inside a repository git apply skips, in silence, what lies outside the current
	// folder.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the patch %s does not apply any more: %w\n%s", g.Name, err, out)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from) //nolint:gosec // G304: a file that our own patch names
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600) //nolint:gosec // G703: a path of our own patch
}

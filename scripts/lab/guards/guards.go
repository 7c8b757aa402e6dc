// Package guards reads the patches in guards/patches. Each patch removes one guard of the
// product. It changes copies, never the tree, and an overlay makes the go command compile
// those. The package does not know what happens without a guard; the test that a patch
// names, and the storm, find that out.
package guards

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Guard is one safeguard of the product, and the patch that removes it.
type Guard struct {
	Name      string // of the patch, without its extension
	Summary   string // what is removed, and why people write it that way
	Invariant string // the invariant of docs/design.md that breaks
	Catcher   Catcher
	Worlds    string // the most random worlds that are needed; "" if the search catches it
	Needs     string // faults of the shortest history, separated by "; "; "" if no history shows it
	Patch     string // the path of the patch
	Diff      string // the changes; see Parse
}

// Catcher is the test that fails without the guard.
type Catcher struct {
	Test  string
	Claim string // the subtest that must fail; "" if the test has none
	Pkg   string // as go test takes it
}

// lab is the folder of the lab's module, relative to the product's.
const lab = "scripts/lab"

// Module returns the folder of the module that has the catcher's package, and the package
// relative to it.
func (c Catcher) Module(root string) (dir, pkg string) {
	for _, module := range []string{lab, "scripts"} {
		if inside, ok := strings.CutPrefix(c.Pkg, "./"+module+"/"); ok {
			return filepath.Join(root, module), "./" + inside
		}
	}
	return root, c.Pkg
}

// Search catches most patches. It prints the broken invariant and the shortest history.
func Search() Catcher { return Catcher{Test: "TestScenario", Pkg: "./scripts/lab/simulation"} }

// Random is the same for patches that need more than two faults.
func Random() Catcher { return Catcher{Test: "TestWorlds", Pkg: "./scripts/lab/simulation"} }

// IsSimulation reports whether the simulation catches the patch, and so prints the
// invariant.
func (c Catcher) IsSimulation() bool { return c == Search() || c == Random() }

// String returns the test for people, such as
// `TestStore "bind of another intent returns ErrClaimLost" in ./adapters/dynamodb`.
func (c Catcher) String() string {
	if c.Claim == "" {
		return c.Test + " in " + c.Pkg
	}
	return fmt.Sprintf("%s %q in %s", c.Test, c.Claim, c.Pkg)
}

// Path returns the name of the test that must fail, as package testing writes it.
func (c Catcher) Path() string {
	if c.Claim == "" {
		return c.Test
	}
	return c.Test + "/" + strings.ReplaceAll(c.Claim, " ", "_")
}

// Pattern returns the pattern for go test -run that matches this test only.
func (c Catcher) Pattern() string {
	levels := strings.Split(c.Path(), "/")
	for i, l := range levels {
		levels[i] = "^" + regexp.QuoteMeta(l) + "$"
	}
	return strings.Join(levels, "/")
}

// ErrUnknown means that no patch has the requested name.
var ErrUnknown = errors.New("unknown guard; make break lists them")

// Root returns the root folder of the product's module, also for a caller in the lab's
// module. It does not need the path of the module, which whoever adopts it renames.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	root := strings.TrimSuffix(strings.TrimSpace(string(out)), "/"+lab)
	if err != nil || root == "" {
		return "", fmt.Errorf("go list -m: %w: run this inside the repository", cmp.Or(err, os.ErrNotExist))
	}
	return root, nil
}

// All returns the guards of the module at root, sorted by name.
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

// Find returns a guard of the module at root, or ErrUnknown.
func Find(root, name string) (Guard, error) {
	all, err := All(root)
	if err != nil {
		return Guard{}, err
	}
	at := slices.IndexFunc(all, func(g Guard) bool { return g.Name == name })
	if at < 0 {
		return Guard{}, fmt.Errorf("%q: %w", name, ErrUnknown)
	}
	return all[at], nil
}

// Parse parses a patch. Before the changes it has two or three comment lines:
//
//	# What is removed.
//	# caught by: I1
//	# needs: 429; a declined card
//	+++ domain/order/process.go
//	-	the lines that are replaced, which must be in the file once
//	+	the lines that replace them
//
// "caught by" names the search by default, "I1, within 10000 worlds" random worlds, and
// `I1, by TestStore "bind of another intent returns ErrClaimLost" in ./adapters/dynamodb`
// another test. The third line lists the faults of the shortest history, if the
// simulation catches the patch; break --update writes it.
//
// A line that starts with a blank is context, and one that starts with @@ is between two
// changes of a file. A file without replaced lines is a new one: a call that the product
// does not make needs a place. So what git diff prints is a patch too.
func Parse(text string) (Guard, error) {
	header := regexp.MustCompile(`^# (.+)\n# caught by: (I\d+)` +
		`(?:, within (\d+) worlds|, by (Test\w+)(?: "([^"]+)")? in (\./\S+))?\n` +
		`(?:# needs: (.+)\n)?((?:---|\+\+\+) (?s:.*))$`)
	m := header.FindStringSubmatch(text)
	if m == nil {
		return Guard{}, errors.New(`want "# what is removed", "# caught by: I1" (and where, if not by the ` +
			`search), "# needs: 429" if worlds catch it, and the changes`)
	}
	g := Guard{
		Summary: m[1], Invariant: m[2], Worlds: m[3], Catcher: Catcher{m[4], m[5], m[6]}, Needs: m[7], Diff: m[8],
	}
	if g.Needs != "" && g.Catcher.Test != "" {
		return Guard{}, fmt.Errorf("needs: not possible with %s, which prints no history", g.Catcher)
	}
	switch {
	case g.Worlds != "":
		g.Catcher = Random()
	case g.Catcher.Test == "":
		g.Catcher = Search()
	}
	return g, nil
}

// Update writes the needs into the patch.
func (g Guard) Update(needs string) error {
	text, err := os.ReadFile(g.Patch)
	if err != nil {
		return err
	}
	lines := regexp.MustCompile(`(# caught by: .+\n)(?:# needs: .+\n)?`)
	updated := lines.ReplaceAllString(string(text), "${1}# needs: "+needs+"\n")
	return os.WriteFile(g.Patch, []byte(updated), 0o600) //nolint:gosec // G703: a patch of this module
}

// Changes returns the changes for people.
func (g Guard) Changes() string {
	var b strings.Builder
	for _, f := range g.Files() {
		b.WriteString("    " + f.Path + "\n")
		for _, c := range f.changes {
			b.WriteString("    ...\n")
			for line := range strings.Lines(c.text) {
				b.WriteString("    " + line)
			}
		}
	}
	return b.String()
}

// File is one that a patch changes or adds.
type File struct {
	Path string // slash-separated, relative to the module's root

	changes []change
}

type change struct{ old, now, text string }

// Files returns the files that the patch changes or adds.
func (g Guard) Files() (all []File) {
	for line := range strings.Lines(g.Diff) {
		if path, ok := strings.CutPrefix(line, "+++ "); ok {
			path = strings.TrimPrefix(strings.TrimSpace(path), "b/")
			all = append(all, File{Path: path, changes: make([]change, 1)})
			continue
		}
		if strings.HasPrefix(line, "--- ") || len(all) == 0 {
			continue
		}
		f := &all[len(all)-1]
		c := &f.changes[len(f.changes)-1]
		if line[0] == '@' {
			if c.text != "" {
				f.changes = append(f.changes, change{})
			}
			continue
		}
		c.text += line
		if line[0] != '+' {
			c.old += line[1:]
		}
		if line[0] != '-' {
			c.now += line[1:]
		}
	}
	return all
}

func (f File) apply(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, f.Path)) //nolint:gosec // G304: a file of our own patch
	if errors.Is(err, fs.ErrNotExist) && f.changes[0].old == "" {
		return f.changes[0].now, nil
	}
	if err != nil {
		return "", err
	}
	text := "\n" + string(source)
	for _, c := range f.changes {
		if n := strings.Count(text, "\n"+c.old); n != 1 {
			return "", fmt.Errorf("%s: want these lines once, got them %d times:\n%s", f.Path, n, c.old)
		}
		text = strings.Replace(text, "\n"+c.old, "\n"+c.now, 1)
	}
	return text[1:], nil
}

// Remove applies the patch to copies in dir, and returns the path of the overlay that
// makes the go command compile them. An error means that the patch does not apply.
func (g Guard) Remove(root, dir string) (overlay string, err error) {
	replace := map[string]string{}
	for _, f := range g.Files() {
		text, err := f.apply(root)
		if err != nil {
			return "", fmt.Errorf("patch %s does not apply: %w", g.Name, err)
		}
		to := filepath.Join(dir, f.Path)
		err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, []byte(text), 0o600))
		if err != nil {
			return "", err
		}
		replace[filepath.Join(root, f.Path)] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// Without calls f with the overlay of copies without the guard, which exist until it
// returns.
func (g Guard) Without(root string, f func(overlay string) error) (err error) {
	dir, err := os.MkdirTemp("", "orderonce-without-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := g.Remove(root, dir)
	if err != nil {
		return err
	}
	return f(overlay)
}

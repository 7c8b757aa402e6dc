package main

import (
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

// bugs is where the patches are, below the module's root.
const bugs = "scripts/prove/bugs"

// guard is one thing of the product that keeps a promise, and the patch that takes it away.
type guard struct {
	name     string // of the patch, without its extension
	says     string // what is taken away, and why people do that
	caughtBy string // the invariant that breaks first
	patch    string // its path
	diff     string
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

// parseGuard reads the two comment lines before a diff.
func parseGuard(text string) (guard, error) {
	parts := strings.SplitN(text, "\n", 3)
	if len(parts) < 3 {
		return guard{}, errors.New("want two comment lines and a diff")
	}
	says, first := strings.CutPrefix(parts[0], "# ")
	caughtBy, second := strings.CutPrefix(parts[1], "# caught by: ")
	if !first || !second || !strings.HasPrefix(parts[2], "--- a/") {
		return guard{}, errors.New(`want "# what is taken away", "# caught by: I1" and a diff`)
	}
	return guard{says: says, caughtBy: caughtBy, diff: parts[2]}, nil
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

// files are the paths that the patch touches, with slashes and relative to the module's root.
func (g guard) files() (all []string) {
	for line := range strings.Lines(g.diff) {
		if path, ok := strings.CutPrefix(line, "+++ b/"); ok {
			all = append(all, strings.TrimSpace(path))
		}
	}
	return all
}

// take runs the search without the guard and returns the history that it found. It is an error if there is none, or
// if another promise is broken than the patch says.
func (g guard) take(ctx context.Context, root string) (story string, err error) {
	dir, err := os.MkdirTemp("", "orderonce-break-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := g.apply(ctx, root, dir); err != nil {
		return "", err
	}
	overlay, err := g.overlay(root, dir)
	if err != nil {
		return "", err
	}
	args := []string{"test", "-count=1", "-vet=off", "-overlay", overlay, "-run", "^TestScenario$", "./scripts/prove"}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: the path is our own
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return g.judge(string(out), err)
}

// apply copies what the patch touches below dir, and patches the copies.
func (g guard) apply(ctx context.Context, root, dir string) error {
	for _, f := range g.files() {
		text, err := os.ReadFile(filepath.Join(root, f)) //nolint:gosec // G304: a file that our own patch names
		if err != nil {
			return fmt.Errorf("the patch %s does not apply any more: %w", g.name, err)
		}
		to := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil { //nolint:gosec // G703: a path of our own patch
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "git", "apply", g.patch) //nolint:gosec // G204: the path is our own
	cmd.Dir = dir
	// Inside a repository git apply skips, in silence, what lies outside the current folder.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the patch %s does not apply any more: %w\n%s", g.name, err, out)
	}
	return nil
}

// overlay writes what go test wants to know: which file stands for which.
func (g guard) overlay(root, dir string) (path string, err error) {
	replace := map[string]string{}
	for _, f := range g.files() {
		replace[filepath.Join(root, f)] = filepath.Join(dir, f)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// judge reads what the search printed. testErr is nil if it passed.
func (g guard) judge(out string, testErr error) (story string, err error) {
	broken := regexp.MustCompile(`(?m)^ +(I\d+) broken for order`).FindStringSubmatch(out)
	switch {
	case testErr == nil:
		return "", fmt.Errorf("NOT CAUGHT: without %s no invariant was broken; the search is too small, or the guard is not needed", g.name)
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return "", fmt.Errorf("with the patch %s the product does not compile any more:\n%s", g.name, out)
	case broken == nil:
		return "", fmt.Errorf("without %s the search itself failed: %w\n%s", g.name, testErr, out)
	case broken[1] != g.caughtBy:
		return told(out), fmt.Errorf("without %s, %s was broken; the patch expects %s", g.name, broken[1], g.caughtBy)
	}
	return told(out), nil
}

// told is what the test itself printed, without what go test adds.
func told(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		text, indented := strings.CutPrefix(line, "    ")
		if indented && !strings.HasPrefix(text, "scenario_test.go:") {
			b.WriteString(text)
		}
	}
	return strings.TrimRight(b.String(), "\n ") + "\n"
}

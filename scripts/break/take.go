package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// take runs the catcher without the guard and returns what it tells. It is an error if the catcher notices nothing, or if
// another promise is broken than the patch says.
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
	args := []string{"test", "-json", "-count=1", "-vet=off", "-timeout=5m", "-overlay", overlay, "-run", g.catcher.pattern(), g.catcher.pkg}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: the arguments are our own
	cmd.Dir = root
	// A test that misses its engine shall skip and say so. If it failed, it would look like a catch.
	cmd.Env = append(os.Environ(), "ORDERONCE_REQUIRE_ENGINE=", "CI=", "ORDERONCE_PROVE_WORLDS="+g.worlds)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return "", err
	}
	return g.judge(read(out, g.catcher))
}

// apply copies what the patch touches below dir, and patches the copies.
func (g guard) apply(ctx context.Context, root, dir string) error {
	for _, f := range g.files() {
		if f.added {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, f.path)) //nolint:gosec // G304: a file that our own patch names
		if err != nil {
			return fmt.Errorf("the patch %s does not apply any more: %w", g.name, err)
		}
		to := filepath.Join(dir, f.path)
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
		replace[filepath.Join(root, f.path)] = filepath.Join(dir, f.path)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

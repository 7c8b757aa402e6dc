package main

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"orderonce/scripts/lab/guards"
)

// runCatcher runs the catcher without the guard and returns its output. It is an error if
// the catcher passes, or if another invariant is broken than the patch says.
func runCatcher(ctx context.Context, root string, g guards.Guard) (history string, err error) {
	dir, err := os.MkdirTemp("", "orderonce-break-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := g.Remove(ctx, root, dir)
	if err != nil {
		return "", err
	}
	module, pkg := g.Catcher.Module(root)
	args := []string{
		"test", "-json", "-count=1", "-vet=off", "-timeout=15m", "-overlay", overlay, "-run",
		g.Catcher.Pattern(), pkg,
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: the arguments are our own
	cmd.Dir = module
	// Without its engine a test must skip: a failure would look like a catch.
	cmd.Env = append(os.Environ(), "ORDERONCE_ALL=", "CI=", "ORDERONCE_WORLDS="+g.Worlds,
		"ORDERONCE_BREAKS="+g.Invariant)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return "", err
	}
	return judge(g, parse(out, g.Catcher))
}

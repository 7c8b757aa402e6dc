package main

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"orderonce/scripts/lab/guards"
)

// take runs the catcher without the guard and returns what it tells. It is an error if
// the catcher notices nothing, or if another promise is broken than the patch says.
func take(ctx context.Context, root string, g guards.Guard) (story string, err error) {
	dir, err := os.MkdirTemp("", "orderonce-break-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := g.TakeAway(ctx, root, dir)
	if err != nil {
		return "", err
	}
	module, pkg := g.Catcher.Module(root)
	args := []string{
		"test",
		"-json",
		"-count=1",
		"-vet=off",
		"-timeout=5m",
		"-overlay",
		overlay,
		"-run",
		g.Catcher.Pattern(),
		pkg,
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: the arguments are our own
	cmd.Dir = module
	// A test that misses its engine shall skip and say so. If it failed, it would look
	// like a catch.
	cmd.Env = append(os.Environ(), "ORDERONCE_ALL=", "CI=", "ORDERONCE_WORLDS="+g.Worlds)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return "", err
	}
	return judge(g, read(out, g.Catcher))
}

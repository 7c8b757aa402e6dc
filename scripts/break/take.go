package main

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"orderonce/scripts/prove/bugs"
)

// take runs the catcher without the guard and returns what it tells. It is an error if the catcher notices nothing, or if
// another promise is broken than the patch says.
func take(ctx context.Context, root string, g bugs.Guard) (story string, err error) {
	dir, err := os.MkdirTemp("", "orderonce-break-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := g.TakeAway(ctx, root, dir)
	if err != nil {
		return "", err
	}
	args := []string{"test", "-json", "-count=1", "-vet=off", "-timeout=5m", "-overlay", overlay, "-run", g.Catcher.Pattern(), g.Catcher.Pkg}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: the arguments are our own
	cmd.Dir = root
	// A test that misses its engine shall skip and say so. If it failed, it would look like a catch.
	cmd.Env = append(os.Environ(), "ORDERONCE_REQUIRE_ENGINE=", "CI=", "ORDERONCE_PROVE_WORLDS="+g.Worlds)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return "", err
	}
	return judge(g, read(out, g.Catcher))
}

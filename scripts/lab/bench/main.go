// Command bench is `make bench-quick`. It measures the compiled order function in one
// instance, under a Runtime API host: cold starts, then fresh orders, then duplicates, in
// batches of 10. With a revision of git as its argument it measures the function of that
// revision too, in turns, and shows what changed.
//
// DynamoDB and Stripe are canned back ends that respond at once over loopback HTTP,
// without TLS. They run in this program's process and share the processors with the
// function, so the throughput is a lower bound; the CPU figures are those of the function
// alone. It fails only if an order is not settled.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/guards"
)

const function = "functions/order"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	p := plan{Rounds: 15, ColdStarts: 2, Batches: 134, Duplicates: 134} // 20,000 fresh orders
	err := run(ctx, p, append(os.Args[1:], "")[0])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan, base string) (err error) {
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	fmt.Println("Building", function, "...")
	binaries := []string{filepath.Join(folder, "bootstrap")}
	if err := build(ctx, root, binaries[0]); err != nil {
		return err
	}
	if base != "" {
		binaries = append(binaries, filepath.Join(folder, "base"))
		if err := buildRevision(ctx, root, base, folder, binaries[1]); err != nil {
			return err
		}
	}
	began := time.Now()
	measured, err := measure(ctx, p, binaries, os.Stderr)
	if err != nil {
		return err
	}
	show(os.Stdout, p, base, measured, time.Since(began))
	return nil
}

func build(ctx context.Context, root, binary string) error {
	return lambdatest.Program{Root: root, Package: function}.Build(ctx, binary)
}

// buildRevision builds the function of a revision, from a worktree in the folder.
func buildRevision(ctx context.Context, root, revision, folder, binary string) (err error) {
	tree := filepath.Join(folder, "tree")
	if err := git(ctx, root, "worktree", "add", "--quiet", "--detach", tree, revision); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, git(ctx, root, "worktree", "remove", "--force", tree)) }()
	fmt.Println("Building", function, "of", revision, "...")
	return build(ctx, tree, binary)
}

func git(ctx context.Context, root string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the caller chooses the revision
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, output)
	}
	return nil
}

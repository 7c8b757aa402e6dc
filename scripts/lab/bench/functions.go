package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/storm/node"
)

const product = "functions/order"

// function is a binary that can be measured, and the variables that it alone has. The
// names stand in the tables.
type function struct {
	Name, Binary string
	Env          map[string]string
	ZipSize      float64 // bytes
}

// build compiles the order function, that of the base revision unless it is "", and the
// others if they are wanted. note says what could not be built.
func build(
	ctx context.Context, root, base, folder string, others bool,
) (all []function, note string, err error) {
	add := func(name, tree, pkg string, env map[string]string) error {
		fmt.Println("Building", name, "...")
		f := function{Name: name, Binary: filepath.Join(folder, fmt.Sprint("bootstrap", len(all))), Env: env}
		if err := (lambdatest.Program{Root: tree, Package: pkg}).Build(ctx, f.Binary); err != nil {
			return err
		}
		f.ZipSize, err = zipSize(f.Binary)
		all = append(all, f)
		return err
	}
	// As Terraform sets it; the base has it too, or it would seem slower.
	deployed := map[string]string{"SSL_CERT_DIR": "/nowhere"}
	if err := add("orderonce", root, product, deployed); err != nil {
		return nil, "", err
	}
	if base != "" {
		tree, remove, err := checkOut(ctx, root, base, folder)
		if err != nil {
			return nil, "", err
		}
		defer remove()
		if err := add(base, tree, product, deployed); err != nil {
			return nil, "", err
		}
	}
	if !others {
		return all, "", nil
	}
	lab := filepath.Join(root, "scripts/lab")
	for _, name := range []string{"plain", "floor", "empty"} {
		if err := add(name, root, "./"+filepath.Join("scripts/lab/bench", name), nil); err != nil {
			return nil, "", err
		}
	}
	nodePath, err := node.Find(lab)
	if err != nil {
		return all, "powertools left out: " + err.Error(), nil
	}
	fmt.Println("Bundling powertools ...")
	f := function{Name: "powertools", Binary: filepath.Join(folder, "powertools"), Env: map[string]string{
		"PATH": filepath.Dir(nodePath), "NODE_EXTRA_CA_CERTS": filepath.Join(folder, certificate),
		"STRIPE_TIMEOUT_MS": "8000", "FUNCTION_TIMEOUT_MS": strconv.FormatInt(timeout.Milliseconds(), 10),
	}}
	if err := node.Handler(ctx, lab, "powertools", f.Binary); err != nil {
		return nil, "", err
	}
	f.ZipSize, err = zipSize(f.Binary)
	return append(all, f), "", err
}

func checkOut(ctx context.Context, root, revision, folder string) (tree string, remove func(), err error) {
	tree = filepath.Join(folder, "tree")
	err = git(ctx, root, "worktree", "add", "--quiet", "--detach", tree, revision)
	return tree, func() {
		if err := git(ctx, root, "worktree", "remove", "--force", tree); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}, err
}

func git(ctx context.Context, root string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the caller chooses the revision
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, output)
	}
	return nil
}

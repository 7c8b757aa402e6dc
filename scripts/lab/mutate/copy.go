package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// copyModule copies the files of a module that git knows or could know: gremlins copies
// them again for each worker, so build and node_modules stay behind.
func copyModule(ctx context.Context, from, to string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = from
	names, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files in %s: %w", from, err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(from, name)) //nolint:gosec // G304: a file of this module
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed
		}
		target := filepath.Join(to, name)
		//nolint:gosec // G703: as above
		err = errors.Join(err, os.MkdirAll(filepath.Dir(target), 0o750), os.WriteFile(target, content, 0o600))
		if err != nil {
			return err
		}
	}
	return nil
}

// control is a file with two mutants that is added to each package. No test checks the
// first function; one checks the second. If the first is killed, the tests fail for
// another reason, such as an engine that does not start. If the second lives, tests of
// another package were run.
const (
	control     = "mutation_control.go"
	controlTest = "mutation_control_test.go"

	controlCode = `package %s

func mutationControlLives(n int) int { return n + 1 }

func mutationControlDies(n int) int { return n + 1 }
`
	controlTestCode = `package %s

import "testing"

func TestMutationControl(t *testing.T) {
	mutationControlLives(1)
	if mutationControlDies(1) != 2 {
		t.Error("1 + 1 is not 2")
	}
}
`
)

// prepare adds the controls to a package of the copy. gremlins derives the path of a
// package from the package clause, and runs the tests of the module's root if no folder
// has that name. So a package main is renamed to its folder.
func prepare(module, pkg string) error {
	folder := filepath.Join(module, filepath.FromSlash(pkg))
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: %w: no Go file", folder, errors.Join(err, fs.ErrNotExist))
	}
	for _, file := range files {
		source, err := os.ReadFile(file) //nolint:gosec // G304: a file of the copy
		if err != nil {
			return err
		}
		renamed := strings.Replace("\n"+string(source), "\npackage main\n", "\npackage "+path.Base(pkg)+"\n", 1)
		//nolint:gosec // G703: as above
		if err := os.WriteFile(file, []byte(renamed[1:]), 0o600); err != nil {
			return err
		}
	}
	for file, code := range map[string]string{control: controlCode, controlTest: controlTestCode} {
		text := fmt.Appendf(nil, code, path.Base(pkg))
		if err := os.WriteFile(filepath.Join(folder, file), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// copyModule copies a module without .git, build and node_modules: gremlins copies it
// again for each worker.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != from && slices.Contains([]string{".git", "build", "node_modules"}, d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil // .git of a work tree is a file
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o750)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(name) //nolint:gosec // G304, G122: a file of this module
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600) //nolint:gosec // G703: as above
	})
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
	name := ""
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
			if err != nil {
				return err
			}
			name = parsed.Name.Name
		}
	}
	if name == "main" {
		name = path.Base(pkg)
		for _, file := range files {
			if err := rename(file, "package main", "package "+name); err != nil {
				return err
			}
		}
	}
	for file, code := range map[string]string{control: controlCode, controlTest: controlTestCode} {
		if err := os.WriteFile(filepath.Join(folder, file), fmt.Appendf(nil, code, name), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// rename replaces the package clause.
func rename(file, from, to string) error {
	source, err := os.ReadFile(file) //nolint:gosec // G304: a file of the copy
	if err != nil {
		return err
	}
	renamed := strings.Replace("\n"+string(source), "\n"+from+"\n", "\n"+to+"\n", 1)
	return os.WriteFile(file, []byte(renamed[1:]), 0o600) //nolint:gosec // G703: as above
}

package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// copyModule copies a module without its history and without what was built or installed: gremlins copies it again for each worker.
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

// control is a file of each mutated package with a mutant that lives: no test looks at what the function returns. If it is killed, the
// tests fail for another reason than a mutant, such as an engine that does not start.
const control = "mutation_control.go"

// plantControl adds the control to a package of the copy, with a test that covers it.
func (r runner) plantControl(pkg string) error {
	folder := filepath.Join(r.dir, filepath.FromSlash(pkg))
	name, err := packageName(folder)
	if err != nil {
		return err
	}
	code := fmt.Sprintf("package %s\n\nfunc mutationControl(n int) int { return n + 1 }\n", name)
	test := fmt.Sprintf("package %s\n\nimport \"testing\"\n\nfunc TestMutationControl(*testing.T) { mutationControl(1) }\n", name)
	if err := os.WriteFile(filepath.Join(folder, control), []byte(code), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, strings.TrimSuffix(control, ".go")+"_test.go"), []byte(test), 0o600)
}

// packageName reads the name from any file of the package that is not a test.
func packageName(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		return parsed.Name.Name, nil
	}
	return "", fmt.Errorf("%s: %w: no Go file", folder, fs.ErrNotExist)
}

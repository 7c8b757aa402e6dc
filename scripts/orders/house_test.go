package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
)

// layers are the packages of the tool, each with those that it may import.
func layers() map[string][]string {
	return map[string][]string{
		"audit": nil, "deadletters": nil, "shell": nil, "watch": nil,
		"view":  {"deadletters"},
		"cloud": {"audit", "deadletters", "shell", "view", "watch"},
		"batch": {"cloud", "deadletters"},
		"":      {"audit", "batch", "cloud", "deadletters", "shell", "view", "watch"},
	}
}

func TestImportsRunFromCommandsToQuestionsToViews(t *testing.T) {
	t.Parallel()
	own := lambdatest.Module() + "/scripts/orders/"
	for _, folder := range folders(t) {
		allowed, known := layers()[folder]
		if !known {
			t.Errorf("package %s: want it in the list of layers", folder)
		}
		for name, file := range parsed(t, folder, token.NewFileSet()) {
			for _, spec := range file.Imports {
				imported, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), own)
				if is && !slices.Contains(allowed, imported) {
					t.Errorf("%s imports %s, want at most %q", filepath.Join(folder, name), imported, allowed)
				}
			}
		}
	}
}

// A package can be read file by file if no file leads back to itself.
func TestNoFileUsesOneThatUsesIt(t *testing.T) {
	t.Parallel()
	for _, folder := range folders(t) {
		uses := usesOf(t, folder)
		var visit func(path []string)
		done := map[string]bool{}
		visit = func(path []string) {
			last := path[len(path)-1]
			if at := slices.Index(path, last); at < len(path)-1 {
				t.Errorf("package %q: files use one another: %s", folder, strings.Join(path[at:], " -> "))
				return
			}
			if done[last] {
				return
			}
			for _, next := range uses[last] {
				visit(append(slices.Clone(path), next))
			}
			done[last] = true
		}
		for file := range uses {
			visit([]string{file})
		}
	}
}

// folders returns the folder of every package of the tool.
func folders(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("*/*.go")
	must(t, err)
	all = []string{""}
	for _, file := range files {
		all = append(all, filepath.Dir(file))
	}
	return slices.Compact(all)
}

// parsed returns the files of a package by their names, without the tests.
func parsed(t *testing.T, folder string, set *token.FileSet) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	must(t, err)
	all := map[string]*ast.File{}
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			all[filepath.Base(name)], err = parser.ParseFile(set, name, nil, 0)
			must(t, err)
		}
	}
	return all
}

// importer finds no package, because only what a package itself declares matters.
type importer struct{}

func (importer) Import(string) (*types.Package, error) { return nil, errors.ErrUnsupported }

// usesOf returns for each file of a package the others whose declarations it uses.
func usesOf(t *testing.T, folder string) map[string][]string {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, file := range parsed(t, folder, set) {
		files = append(files, file)
	}
	config := types.Config{Importer: importer{}, Error: func(error) {}}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, _ := config.Check(folder, set, files, info) // errors: what the imports would declare
	all, found := map[string][]string{}, 0
	for id, o := range info.Uses {
		if o.Pkg() != pkg || !o.Pos().IsValid() {
			continue
		}
		from, to := filepath.Base(set.Position(id.Pos()).Filename), filepath.Base(set.Position(o.Pos()).Filename)
		if found++; from != to && !slices.Contains(all[from], to) {
			all[from] = append(all[from], to)
		}
	}
	if found == 0 {
		t.Errorf("package %q: found no use of a declaration", folder)
	}
	return all
}

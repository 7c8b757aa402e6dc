package main

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
	"mvdan.cc/gofumpt/format"
)

// nameOf returns the name of the product of a module, which is the first part of the name
// of every resource.
func nameOf(modulePath string) (string, error) {
	if err := module.CheckPath(modulePath); err != nil {
		return "", fmt.Errorf("module path %q: %w", modulePath, err)
	}
	prefix, _, _ := module.SplitPathVersion(modulePath)
	name := strings.ToLower(path.Base(prefix))
	if !regexp.MustCompile(`^[a-z][a-z0-9-]{0,23}$`).MatchString(name) {
		return "", fmt.Errorf(
			"module path %q: its last element names every AWS resource: %q must match ^[a-z][a-z0-9-]{0,23}$",
			modulePath, name)
	}
	return name, nil
}

// rename gives the tree another module path and the product another name, in the names of
// files too, and formats its Go.
func rename(t tree, o origin, modulePath, name string) (tree, error) {
	const placeholder = "\x00"
	own := regexp.QuoteMeta(o.module)
	everywhere := regexp.MustCompile(`\b` + own + `\b`)
	packages := regexp.MustCompile(`(^|[^\w./-])` + own +
		`(/(?:\.\.\.|(?:adapters|domain|examples|functions|scripts)\b))`)
	identifier := strings.ReplaceAll(name, "-", "_")
	names := strings.NewReplacer(
		strings.ToUpper(o.name)+"_", strings.ToUpper(identifier)+"_", o.name+"_", identifier+"_", o.name, name,
		placeholder, modulePath,
	)
	renamed := tree{}
	for file, f := range t {
		if bytes.Contains(f.data, []byte(placeholder)) { // a picture or an archive
			renamed[names.Replace(file)] = f
			continue
		}
		if base := path.Base(file); base == "go.mod" || base == ".golangci.yml" || strings.Contains(o.module, "/") {
			f.data = everywhere.ReplaceAll(f.data, []byte(placeholder))
		}
		f.data = packages.ReplaceAll(f.data, []byte("$1"+placeholder+"$2"))
		f.data = []byte(names.Replace(string(f.data)))
		if path.Ext(file) == ".go" {
			var err error
			if f.data, err = format.Source(f.data, format.Options{ModulePath: modulePath}); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		if strings.Contains(strings.ToLower(string(f.data)), o.name) && !strings.Contains(modulePath, o.name) {
			return nil, fmt.Errorf("%s: names %s in a way that is not renamed: write it in lower case", file, o.name)
		}
		renamed[names.Replace(file)] = f
	}
	return renamed, nil
}

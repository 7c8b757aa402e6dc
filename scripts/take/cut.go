package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"orderonce/scripts/take/gocut"
	"orderonce/scripts/take/textcut"
)

// cut returns the files of the origin without what belongs to an absent part.
func (s *session) cut(o origin, gone absence) (tree, error) {
	t := maps.Clone(o.files)
	if err := errors.Join(t.cutTexts(gone), t.cutTerraform(gone)); err != nil {
		return nil, fmt.Errorf("reword these, or split them:\n%w", err)
	}
	s.step("cut Go")
	dir, err := os.MkdirTemp("", "take-cut-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)                    //nolint:errcheck // a temporary folder
	if err := o.files.write(dir); err != nil { // all, because Go embeds other files
		return nil, err
	}
	lines, err := gocut.Cut(s.ctx, dir, gocut.Options{
		Mentions: gone.mentions, Names: gone.named, Drop: gone.owns, Modules: o.files.modules(), Progress: s.out,
	})
	if err != nil {
		return nil, fmt.Errorf("reword these, or split them:\n%w", err)
	}
	left, err := readTree(dir)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(t, func(name string, _ file) bool { return path.Ext(name) == ".go" })
	for name, f := range left {
		if path.Ext(name) == ".go" {
			t[name] = f
		}
	}
	t.sweep(o.files)
	if err := t.cutTests(o.files); err != nil {
		return nil, err
	}
	t.unlink()
	s.step("%d files, %d lines: %d lines of Go cut", len(t), t.lines(), lines)
	return t, gone.check(t)
}

// cutTexts cuts the files that are neither Go nor Terraform.
func (t tree) cutTexts(gone absence) error {
	var refused []error
	for _, name := range slices.Sorted(maps.Keys(t)) {
		f := t[name]
		if path.Ext(name) == ".go" || isTerraform(name) && f.mode.IsRegular() ||
			!gone.owns(name) && (!f.mode.IsRegular() || strings.HasPrefix(path.Base(name), "go.")) {
			continue
		}
		data, err := []byte(nil), error(nil)
		if !gone.owns(name) {
			data, err = textcut.Cut(name, f.data, gone.mentions)
			refused = append(refused, err)
		}
		if t[name] = (file{f.mode, data}); data == nil && len(f.data) > 0 {
			delete(t, name)
		}
	}
	return errors.Join(refused...)
}

func isTerraform(name string) bool {
	return (path.Ext(name) == ".tf" || path.Ext(name) == ".hcl") && !strings.HasPrefix(path.Base(name), ".") &&
		!strings.HasPrefix(name, "scripts/")
}

// cutTerraform cuts the modules together, because one block refers to another.
func (t tree) cutTerraform(gone absence) error {
	files := map[string][]byte{}
	for name, f := range t {
		if isTerraform(name) && f.mode.IsRegular() {
			files[name] = f.data
		}
	}
	kept, err := textcut.Terraform(files, func(text string) bool {
		return gone.mentions(text) || isTerraform(text) && gone.owns(text) // it asks about each path too
	})
	for name := range files {
		if data, ok := kept[name]; ok {
			t[name] = file{t[name].mode, data}
		} else {
			delete(t, name)
		}
	}
	return err
}

// sweep removes what stood beside Go that is gone, such as testdata, and the symbolic
// links to what is gone.
func (t tree) sweep(before tree) {
	folders := func(files tree) map[string]bool {
		all := map[string]bool{}
		for name := range files {
			if path.Ext(name) == ".go" {
				all[path.Dir(name)] = true
			}
		}
		return all
	}
	had, has := folders(before), folders(t)
	for name := range t {
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if had[folder] && !has[folder] && !t.below(folder) {
				delete(t, name)
			}
		}
	}
	for name, f := range t {
		if _, there := t[path.Join(path.Dir(name), string(f.data))]; f.mode&fs.ModeSymlink != 0 && !there {
			delete(t, name)
		}
	}
}

// unlink takes the links to what is gone out of the documents, and leaves their text.
func (t tree) unlink() {
	before := t.fs()
	for name, f := range t {
		if path.Ext(name) == ".md" && f.mode.IsRegular() {
			t[name] = file{f.mode, textcut.Unlink(before, f.data, name)}
		}
	}
}

// cutTests cuts what documents and the Makefile say of tests that are gone.
func (t tree) cutTests(before tree) error {
	tests := func(files tree) map[string]bool {
		all := map[string]bool{}
		for name, f := range files {
			if strings.HasSuffix(name, "_test.go") {
				for _, match := range testFunction.FindAllSubmatch(f.data, -1) {
					all[string(match[1])] = true
				}
			}
		}
		return all
	}
	had, has := tests(before), tests(t)
	mentions := func(text string) bool {
		gone := func(name string) bool { return had[name] && !has[name] }
		return slices.ContainsFunc(testName.FindAllString(text, -1), gone)
	}
	var refused []error
	for name, f := range t {
		if path.Ext(name) == ".md" || name == "Makefile" {
			data, err := textcut.Cut(name, f.data, mentions)
			t[name], refused = file{f.mode, data}, append(refused, err)
		}
	}
	return errors.Join(refused...)
}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testName     = regexp.MustCompile(`\b(?:Test|Fuzz)\w+`)
)

// below reports whether a folder has Go in it or below it.
func (t tree) below(folder string) bool {
	for name := range t {
		if path.Ext(name) == ".go" && strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return false
}

// check returns an error for each line that mentions an absent part.
func (a absence) check(t tree) error {
	var left []error
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if a.owns(name) {
			left = append(left, fmt.Errorf("%s: %q", name, a.word(name)))
		}
		if !a.mentions(string(t[name].data)) || strings.HasPrefix(path.Base(name), "go.") {
			continue
		}
		for i, line := range strings.Split(string(t[name].data), "\n") {
			if word := a.word(line); word != "" {
				left = append(left, fmt.Errorf("%s:%d: %q in %s", name, i+1, word, strings.TrimSpace(line)))
			}
		}
	}
	if err := errors.Join(left...); err != nil {
		return fmt.Errorf("left of a part that was not taken:\n%w", err)
	}
	return nil
}

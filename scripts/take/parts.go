package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsimple"
)

// catalog is parts.hcl: what can be taken, and what belongs to it.
type catalog struct {
	Default []string `hcl:"default"` // parts taken if none is named
	Parts   []part   `hcl:"part,block"`
	Shared  []part   `hcl:"shared,block"` // what goes when every part that has it goes
	Never   part     `hcl:"never,block"`  // what no project gets
}

type part struct {
	Name     string   `hcl:"name,label"`
	Is       string   `hcl:"is,optional"`
	Promises string   `hcl:"promises,optional"`
	Guide    string   `hcl:"guide,optional"`
	Lines    int      `hcl:"lines,optional"`   // that it adds; see page
	AWS      string   `hcl:"aws,optional"`     // resources
	Dollars  float64  `hcl:"dollars,optional"` // a month, without an order
	Needs    []string `hcl:"needs,optional"`
	Of       []string `hcl:"of,optional"`     // the parts that share it
	Words    []string `hcl:"words,optional"`  // what mentions one belongs to the part
	Except   []string `hcl:"except,optional"` // texts in which no word counts
	Paths    []string `hcl:"paths,optional"`  // globs; FOLDER/** is everything below
	Names    []string `hcl:"names,optional"`  // of Go: FOLDER.Name or FOLDER.Type.Name
}

// everything names every part.
const everything = "everything"

func readParts(files tree) (c catalog, err error) {
	if err := hclsimple.Decode(partsFile, files[partsFile].data, nil, &c); err != nil {
		return c, err
	}
	var wrong []error
	for _, p := range slices.Concat(c.Parts, c.Shared, []part{c.Never}) {
		for _, need := range append(p.Needs, p.Of...) {
			if !slices.ContainsFunc(c.Parts, func(p part) bool { return p.Name == need }) {
				wrong = append(wrong, fmt.Errorf("part %s needs %s, which is not a part", p.Name, need))
			}
		}
		for _, glob := range p.Paths {
			if !anyMatches(files, glob) {
				wrong = append(wrong, fmt.Errorf("part %s: no file matches %s", p.Name, glob))
			}
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return c, fmt.Errorf("%s: %w", partsFile, err)
	}
	return c, nil
}

func anyMatches(files tree, glob string) bool {
	for name := range files {
		if matches(glob, name) {
			return true
		}
	}
	return false
}

func matches(glob, name string) bool {
	if folder, ok := strings.CutSuffix(glob, "/**"); ok {
		return strings.HasPrefix(name, folder+"/")
	}
	ok, _ := path.Match(glob, name)
	return ok
}

func (c catalog) names() (names []string) {
	for _, p := range c.Parts {
		names = append(names, p.Name)
	}
	return names
}

// choose checks the names of parts, or takes the default, and returns them in the order
// of the catalog.
func (c catalog) choose(names []string) ([]string, error) {
	if slices.Equal(names, []string{everything}) {
		names = c.names()
	}
	var wrong []error
	for _, name := range names {
		i := slices.IndexFunc(c.Parts, func(p part) bool { return p.Name == name })
		if i < 0 {
			wrong = append(wrong, fmt.Errorf("unknown part %q: the parts are %s", name, strings.Join(c.names(), ", ")))
			continue
		}
		for _, need := range c.Parts[i].Needs {
			if !slices.Contains(names, need) {
				wrong = append(wrong, fmt.Errorf("part %s needs %s: add it", name, need))
			}
		}
	}
	var chosen []string
	for _, name := range c.names() {
		if slices.Contains(names, name) {
			chosen = append(chosen, name)
		}
	}
	if len(chosen) == 0 && len(wrong) == 0 {
		return c.choose(c.Default)
	}
	return chosen, errors.Join(wrong...)
}

// absence is what a project does not have.
type absence struct {
	parts []part // with Never
	words []words
}

// words finds what mentions a part. A regular expression without an alternative would
// match everything, so nil matches nothing.
type words struct{ word, except *regexp.Regexp }

func anyOf(expressions []string) *regexp.Regexp {
	if len(expressions) == 0 {
		return nil
	}
	return regexp.MustCompile(strings.Join(expressions, "|"))
}

func (c catalog) without(chosen []string) absence {
	a := absence{parts: []part{c.Never}}
	missing := func(name string) bool { return !slices.Contains(chosen, name) }
	for _, p := range c.Parts {
		if missing(p.Name) {
			a.parts = append(a.parts, p)
		}
	}
	for _, p := range c.Shared {
		if !slices.ContainsFunc(p.Of, func(name string) bool { return !missing(name) }) {
			a.parts = append(a.parts, p)
		}
	}
	for _, p := range a.parts {
		if len(p.Words) > 0 {
			a.words = append(a.words, words{anyOf(p.Words), anyOf(p.Except)})
		}
	}
	return a
}

// mentions reports whether a text has a word of an absent part.
func (a absence) mentions(text string) bool { return a.word(text) != "" }

// word returns what a text has of an absent part.
func (a absence) word(text string) string {
	text = plain(text)
	for _, w := range a.words {
		rest := text
		if w.except != nil {
			rest = w.except.ReplaceAllString(text, "")
		}
		if found := w.word.FindString(rest); found != "" {
			return found
		}
	}
	return ""
}

// plain returns a text in lower case, with a space for each underscore and before each
// word of an identifier: OutOfStock and out_of_stock are "out of stock".
func plain(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	upper := func(i int) bool { return i >= 0 && i < len(text) && 'A' <= text[i] && text[i] <= 'Z' }
	lower := func(i int) bool { return i >= 0 && i < len(text) && 'a' <= text[i] && text[i] <= 'z' }
	for i := range len(text) {
		switch {
		case text[i] == '_':
			b.WriteByte(' ')
		case !upper(i):
			b.WriteByte(text[i])
		default:
			if lower(i-1) || upper(i-1) && lower(i+1) {
				b.WriteByte(' ')
			}
			b.WriteByte(text[i] + 'a' - 'A')
		}
	}
	return b.String()
}

// owns reports whether a file belongs to an absent part.
func (a absence) owns(name string) bool {
	return a.mentions(name) || slices.ContainsFunc(a.parts, func(p part) bool {
		return slices.ContainsFunc(p.Paths, func(glob string) bool { return matches(glob, name) })
	})
}

// named reports whether a Go identifier belongs to an absent part.
func (a absence) named(identifier string) bool {
	return slices.ContainsFunc(a.parts, func(p part) bool { return slices.Contains(p.Names, identifier) })
}

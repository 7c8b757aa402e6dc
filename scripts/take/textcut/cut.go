// Package textcut cuts what mentions a missing part out of files that are not Go, in the
// smallest unit of each file's syntax: a sentence, a row, a section, a block, an element,
// a target. It knows nothing of parts, and it refuses rather than guesses: what has no
// clear unit is an error that names the line, so that somebody rewords the source.
package textcut

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Cut cuts what mentions missing parts out of the file src, whose path decides its
// syntax. It returns nil if the file holds nothing any more. The error joins the
// refusals, each of the form "PATH:LINE: cannot cut ...".
func Cut(name string, src []byte, mentions func(text string) bool) ([]byte, error) {
	if !mentions(string(src)) {
		return src, nil
	}
	c := &cutter{path: name, src: string(src), mentions: mentions}
	var out string
	switch kind := path.Ext(name); {
	case kind == ".md":
		out = c.markdown()
	case path.Base(name) == "help.txt":
		out = c.help()
	case kind == ".tf", kind == ".tfvars", kind == ".hcl", strings.HasSuffix(name, ".tf.example"):
		return cutHCL(c, nil)
	case kind == ".json":
		out = c.json()
	case kind == ".yml", kind == ".yaml":
		out = c.yaml()
	case path.Base(name) == "Makefile":
		out = c.makefile()
	case kind == ".sh", name == ".ci/run":
		out = c.shell()
	case kind == ".css", kind == ".js", kind == ".html", kind == ".svg", kind == ".ts":
		c.refuse(c.src, "a "+kind[1:]+" file that mentions it")
	default:
		out = joinLines(c.dropLines(splitLines(c.src)))
	}
	return c.result(out)
}

type cutter struct {
	path, src string
	mentions  func(string) bool
	refusals  []error
	verbatim  bool // fenced blocks stay as they are
}

// refuse reports that text, which is part of the source, cannot be cut.
func (c *cutter) refuse(text, what string) {
	first := strings.TrimSpace(strings.SplitN(strings.TrimSpace(text), "\n", 2)[0])
	for _, line := range splitLines(text) {
		if c.mentions(line) {
			first = strings.TrimSpace(line)
			break
		}
	}
	at := 0
	if i := strings.Index(c.src, first); i >= 0 {
		at = strings.Count(c.src[:i], "\n") + 1
	}
	c.refusals = append(c.refusals, fmt.Errorf("%s:%d: cannot cut %s: %s", c.path, at, what, first))
}

// result checks that nothing of out mentions a missing part any more.
func (c *cutter) result(out string) ([]byte, error) {
	if len(c.refusals) == 0 && c.mentions(out) {
		for _, line := range splitLines(out) {
			if c.mentions(line) {
				c.refuse(line, "a line")
			}
		}
		if len(c.refusals) == 0 {
			c.refuse(out, "what spans lines")
		}
	}
	switch {
	case len(c.refusals) > 0:
		return nil, errors.Join(c.refusals...)
	case strings.TrimSpace(out) == "":
		return nil, nil
	}
	return append(bytes.TrimRight([]byte(out), "\n"), '\n'), nil
}

func splitLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func joinLines(lines []string) string { return strings.Join(lines, "\n") }

// logical joins each line that ends in a backslash with those that continue it.
func logical(lines []string) [][]string {
	var all [][]string
	for i := 0; i < len(lines); {
		j := i
		for j < len(lines)-1 && strings.HasSuffix(lines[j], `\`) {
			j++
		}
		all = append(all, lines[i:j+1])
		i = j + 1
	}
	return all
}

// dropLines drops the lines that mention, with those that continue them.
func (c *cutter) dropLines(lines []string) (kept []string) {
	for _, line := range logical(lines) {
		if !c.mentions(joinLines(line)) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// indent counts the spaces that a line begins with; a blank line has no indentation.
func indent(line string) int {
	if strings.TrimSpace(line) == "" {
		return -1
	}
	return len(line) - len(strings.TrimLeft(line, " "))
}

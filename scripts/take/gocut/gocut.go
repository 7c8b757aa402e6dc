// Package gocut cuts parts out of a tree of Go modules: what mentions a missing part goes
// in the smallest unit of Go's syntax, then what nobody refers to any more. It does not
// know the parts: its caller says what mentions one.
package gocut

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// Options say what to cut.
type Options struct {
	// Mentions reports whether a text mentions a missing part: an identifier, a string, an
	// import path or a sentence of a comment.
	Mentions func(text string) bool
	// Names reports whether a qualified identifier belongs to a missing part, such as
	// "domain/order.Begin", the field "domain/order.Record.Events" or a method.
	Names func(qualified string) bool
	// Drop reports whether a file belongs to a missing part. Cut deletes these files after
	// it has read them: what only they used goes too, and would stay if the caller had
	// deleted them.
	Drop     func(path string) bool
	Modules  []string  // the folders of the tree's modules: ".", "scripts"
	Progress io.Writer // gets a line per round
}

// maxRounds is how often the tree is type-checked again after errors were cut.
const maxRounds = 12

// Cut takes what mentions a missing part out of the .go files below dir, then what no
// longer resolves and what nobody refers to any more, and returns how many lines that
// were. It refuses rather than guesses: its error lists each "PATH:LINE: cannot cut ...",
// and the tree is then unfinished.
func Cut(ctx context.Context, dir string, o Options) (lines int, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return 0, err
	}
	var before *history
	last := math.MaxInt // errors of the round before
	for round := range maxRounds {
		t, err := load(ctx, dir, o)
		if err != nil {
			return lines, err
		}
		if before == nil {
			before = t.remember()
		}
		t.before = before
		t.seed()
		broken := t.blame()
		if round == 0 && len(broken) > 0 {
			return lines, fmt.Errorf("the tree does not compile: %w", errors.Join(broken...))
		}
		t.settle()
		fmt.Fprintf(o.Progress, "round %d: %d errors, %d cuts\n", round+1, len(broken), len(t.gone))
		edits := t.edit()
		if err := t.refusals(); err != nil {
			return lines, err
		}
		if len(edits) == 0 || len(broken) > 0 && len(broken) >= last {
			return lines, errors.Join(broken...)
		}
		if len(broken) > 0 {
			last = len(broken)
		}
		cut, err := write(edits)
		if lines += cut; err != nil {
			return lines, err
		}
	}
	return lines, fmt.Errorf("still not complete after %d rounds", maxRounds)
}

// blame queues what the errors of the type check point at.
func (t *tree) blame() (broken []error) {
	for _, e := range t.errs {
		err := fmt.Errorf("%s: %s", t.rel(e.Pos), e.Msg)
		if slices.ContainsFunc(broken, func(b error) bool { return b.Error() == err.Error() }) {
			continue
		}
		broken = append(broken, err)
		n := t.nodeAt(e.Pos)
		switch id, is := n.(*ast.Ident); {
		case n == nil || strings.Contains(e.Msg, "arguments in call"):
		case is && strings.Contains(e.Msg, "declared and not used"):
			t.unused(id)
		default:
			t.queue = append(t.queue, n)
		}
	}
	return broken
}

// nodeAt returns the smallest node at "FILE:LINE:COLUMN".
func (t *tree) nodeAt(pos string) (found ast.Node) {
	for _, f := range t.files {
		rest, is := strings.CutPrefix(pos, f.name+":")
		if !is {
			continue
		}
		var line, column int
		_, _ = fmt.Sscanf(rest, "%d:%d", &line, &column)
		if line == 0 {
			continue
		}
		at := t.fset.File(f.ast.Pos()).LineStart(line) + token.Pos(column-1)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if n == nil || at < n.Pos() || at >= n.End() {
				return false
			}
			if _, is := n.(*ast.File); !is {
				found = n
			}
			return true
		})
	}
	return found
}

// refusals returns what could not be cut, and is still there.
func (t *tree) refusals() error {
	var lines []string
	for _, r := range t.refused {
		if !t.isGone(r.within) {
			lines = append(lines, t.at(r.of)+": cannot cut "+r.why)
		}
	}
	slices.Sort(lines)
	if lines = slices.Compact(lines); len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// at returns the path and line of a node.
func (t *tree) at(n interface{ Pos() token.Pos }) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", t.rel(p.Filename), p.Line)
}

func (t *tree) rel(path string) string {
	rel, err := filepath.Rel(t.dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

package gocut

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// edit replaces the text from one offset to another.
type edit struct {
	from, to int
	text     string
}

// editor collects the edits of a file.
type editor struct {
	*tree
	*file
	edits []edit
}

func (e *editor) offset(p token.Pos) int { return e.fset.Position(p).Offset }

func (e *editor) replace(from, to token.Pos, text string) {
	e.edits = append(e.edits, edit{e.offset(from), e.offset(to), text})
}

// edit returns the editors of the files that change.
func (t *tree) edit() (all []*editor) {
	for _, f := range t.files {
		e := &editor{tree: t, file: f}
		if !t.gone[f.ast] {
			e.collect()
			e.comments()
		}
		if t.gone[f.ast] || len(e.edits) > 0 {
			all = append(all, e)
		}
	}
	return all
}

// write writes the files that changed, deletes those of which nothing is left, and
// returns how many lines are gone.
func write(all []*editor) (lines int, err error) {
	for _, e := range all {
		lines += bytes.Count(e.src, []byte("\n"))
		if e.gone[e.ast] {
			if err := os.Remove(e.name); err != nil {
				return lines, err
			}
			_ = os.Remove(filepath.Dir(e.name)) // if it is empty
			continue
		}
		out, err := format.Source(e.apply())
		if err != nil {
			return lines, fmt.Errorf("%s: after the cuts: %w", e.path, err)
		}
		lines -= bytes.Count(out, []byte("\n"))
		if err := os.WriteFile(e.name, out, 0o666); err != nil { //nolint:gosec // source, as others wrote it
			return lines, err
		}
	}
	return lines, nil
}

// collect adds an edit for each cut.
func (e *editor) collect() {
	ast.Inspect(e.ast, func(n ast.Node) bool {
		if x, is := n.(ast.Expr); is && e.literal[x] != "" {
			e.replace(n.Pos(), n.End(), e.literal[x])
			return false
		}
		if n == nil || e.gone[n] {
			return false
		}
		e.lists(n)
		e.others(n)
		if by := e.unwrap[n]; by != nil {
			e.replace(n.Pos(), by.Pos(), "")
			e.replace(by.End(), n.End(), "")
		}
		return true
	})
}

// lists cuts the elements of a node's lists.
func (e *editor) lists(n ast.Node) {
	switch n := n.(type) {
	case *ast.File:
		list(e, n.Decls)
	case *ast.GenDecl:
		list(e, n.Specs)
	case *ast.ValueSpec:
		list(e, n.Names)
		list(e, n.Values)
	case *ast.FieldList:
		list(e, n.List)
	case *ast.Field:
		list(e, n.Names)
	case *ast.BlockStmt:
		list(e, n.List)
	case *ast.CaseClause:
		list(e, n.List)
		list(e, n.Body)
	case *ast.CommClause:
		list(e, n.Body)
	case *ast.CompositeLit:
		list(e, n.Elts)
	case *ast.CallExpr:
		list(e, n.Args)
	}
}

// others cuts parts of a node that are no elements of a list.
func (e *editor) others(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		e.assign(n)
	case *ast.BinaryExpr:
		if e.gone[n.X] {
			e.replace(n.X.Pos(), n.Y.Pos(), "")
		} else if e.gone[n.Y] {
			e.replace(n.X.End(), n.Y.End(), "")
		}
	case *ast.IfStmt:
		e.branch(n)
	case *ast.SwitchStmt:
		if n.Init != nil && e.gone[n.Init] {
			to := n.Body.Pos()
			if n.Tag != nil {
				to = n.Tag.Pos()
			}
			e.replace(n.Init.Pos(), to, "")
		}
	case *ast.RangeStmt:
		if n.Key != nil && e.gone[n.Key] {
			e.replace(n.Key.Pos(), n.Range, "")
		} else if n.Value != nil && e.gone[n.Value] {
			e.replace(n.Key.End(), n.Value.End(), "")
		}
	}
}

func (e *editor) assign(n *ast.AssignStmt) {
	if e.unwrap[n] != nil {
		return
	}
	list(e, n.Lhs)
	list(e, n.Rhs)
	declares := false
	for _, l := range n.Lhs {
		if id, is := l.(*ast.Ident); is && !e.gone[l] && e.literal[l] == "" && id.Name != "_" {
			declares = declares || e.defs[id.Pos()] == id || e.redef[id.Pos()]
		}
	}
	if _, is := e.parent[n].(*ast.TypeSwitchStmt); is || declares == (n.Tok == token.DEFINE) {
		return
	}
	switch n.Tok { //nolint:exhaustive // += and the like declare nothing
	case token.ASSIGN:
		e.replace(n.TokPos, n.TokPos, ":")
	case token.DEFINE:
		e.replace(n.TokPos, n.TokPos+1, "")
	}
}

// branch folds an if statement whose condition is constant, or drops its else.
func (e *editor) branch(n *ast.IfStmt) {
	v, folds := e.inline[n]
	_, isElse := e.parent[n].(*ast.IfStmt)
	switch {
	case e.unwrap[n] != nil:
	case !folds:
		if n.Init != nil && e.gone[n.Init] {
			e.replace(n.Init.Pos(), n.Cond.Pos(), "")
		}
		if n.Else != nil && e.gone[n.Else] {
			e.replace(n.Body.End(), n.Else.End(), "")
		}
	case isElse && v:
		e.replace(n.Pos(), n.Body.Pos(), "")
		e.replace(n.Body.End(), n.End(), "")
	case v:
		e.open(n, n.Body)
	default:
		if block, is := n.Else.(*ast.BlockStmt); is && !isElse {
			e.open(n, block)
		} else {
			e.replace(n.Pos(), n.Else.Pos(), "")
		}
	}
}

// open replaces a statement by the statements of one of its blocks.
func (e *editor) open(n ast.Stmt, block *ast.BlockStmt) {
	from, to := e.offset(n.Pos()), e.offset(block.Lbrace)+1
	from = e.lineStart(from)
	if end, whole := e.lineEnd(to); whole {
		to = end
	}
	e.edits = append(e.edits, edit{from: from, to: to})
	from, to = e.offset(block.Rbrace), e.offset(n.End())
	if end, whole := e.lineEnd(to); whole {
		from, to = e.lineStart(from), end
	}
	e.edits = append(e.edits, edit{from: from, to: to})
}

// lineStart returns the start of the line if there is only space before the offset.
func (e *editor) lineStart(from int) int {
	start := bytes.LastIndexByte(e.src[:from], '\n') + 1
	if len(bytes.TrimSpace(e.src[start:from])) == 0 {
		return start
	}
	return from
}

// lineEnd returns the start of the next line if there is only a separator or a comment
// after the offset.
func (e *editor) lineEnd(to int) (end int, whole bool) {
	end = to + bytes.IndexByte(append(e.src[to:len(e.src):len(e.src)], '\n'), '\n')
	rest := strings.TrimLeft(string(e.src[to:end]), ",; \t")
	return min(end+1, len(e.src)), rest == "" || strings.HasPrefix(rest, "//")
}

// list cuts the elements of a list that are gone, each with its separator.
func list[T ast.Node](e *editor, nodes []T) {
	for i := 0; i < len(nodes); i++ {
		if !e.gone[nodes[i]] {
			continue
		}
		first := i
		for i+1 < len(nodes) && e.gone[nodes[i+1]] && !e.wholeLines(nodes[first], nodes[i]) {
			i++
		}
		from, to := e.offset(nodes[first].Pos()), e.offset(nodes[i].End())
		switch next := i + 1; {
		case e.wholeLines(nodes[first], nodes[i]):
			e.lines(nodes[first], nodes[i])
			continue
		case next < len(nodes) && (first == 0 || e.line(nodes[next].Pos()) == e.line(nodes[i].End())):
			to = e.offset(nodes[next].Pos())
		case first > 0:
			from = e.offset(nodes[first-1].End())
		default:
			if rest := e.src[to:]; len(rest) > 0 && rest[0] == ',' {
				to++
			}
		}
		e.edits = append(e.edits, edit{from: from, to: to})
	}
}

func (e *editor) line(p token.Pos) int { return e.fset.Position(p).Line }

// wholeLines reports whether the nodes have their lines to themselves.
func (e *editor) wholeLines(first, last ast.Node) bool {
	from := e.offset(first.Pos())
	end, whole := e.lineEnd(e.offset(last.End()))
	start := e.lineStart(from)
	if !whole || start == from && from > 0 && e.src[from-1] != '\n' {
		return false
	}
	before, after := bytes.TrimSpace(e.src[:start]), bytes.TrimLeft(e.src[end:], "\t")
	comma := bytes.IndexByte(e.src[e.offset(last.End()):end], ',') >= 0
	// The last argument before a parenthesis has no comma, and takes the one before.
	ends := len(after) > 0 && bytes.ContainsAny(after[:1], ")}]")
	return comma || !ends || !bytes.HasSuffix(before, []byte(","))
}

// lines cuts the lines of the nodes with the comment above.
func (e *editor) lines(first, last ast.Node) {
	from := e.lineStart(e.offset(first.Pos()))
	for _, c := range e.ast.Comments {
		if end := e.offset(c.End()); end < from && len(bytes.TrimSpace(e.src[end:from])) == 0 &&
			bytes.Count(e.src[end:from], []byte("\n")) == 1 {
			if start := e.offset(c.Pos()); e.lineStart(start) < start || start == 0 || e.src[start-1] == '\n' {
				from = e.lineStart(start)
			}
		}
	}
	to, _ := e.lineEnd(e.offset(last.End()))
	e.edits = append(e.edits, edit{from: from, to: to})
}

// apply returns the file after its edits. No blank line stays at the start or the end
// of a block, nor two in a row.
func (e *editor) apply() []byte {
	slices.SortStableFunc(e.edits, func(a, b edit) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var out []byte
	at := 0
	for _, d := range e.edits {
		if d.from < at {
			at = max(at, d.to)
			continue
		}
		out = append(out, e.src[at:d.from]...)
		out = append(out, d.text...)
		at = d.to
		if !bytes.HasSuffix(out, []byte("\n")) {
			continue
		}
		for at < len(e.src) && e.src[at] == '\n' && (bytes.HasSuffix(out, []byte("\n\n")) ||
			bytes.HasSuffix(out, []byte("{\n")) || bytes.HasSuffix(out, []byte("(\n"))) {
			at++
		}
		if next := bytes.TrimLeft(e.src[at:], "\t"); bytes.HasSuffix(out, []byte("\n\n")) && len(next) > 0 &&
			(next[0] == '}' || next[0] == ')') {
			out = out[:len(out)-1]
		}
	}
	return append(out, e.src[at:]...)
}

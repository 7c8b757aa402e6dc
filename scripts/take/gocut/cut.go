package gocut

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// seed queues what mentions a missing part: declarations first, so that the arguments of
// a parameter follow it, then the uses of files that go, then the rest.
func (t *tree) seed() {
	var rest, files []ast.Node
	for _, f := range t.files {
		if t.Drop(f.path) {
			files = append(files, f.ast)
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				if t.Mentions(n.Path.Value) {
					t.queue = append(t.queue, n)
				}
				return false
			case *ast.Ident:
				switch gone := t.Mentions(n.Name) || t.Names(t.qualified(f, n)); {
				case gone && t.defs[n.Pos()] == n:
					t.queue = append(t.queue, n)
				case gone:
					rest = append(rest, n)
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING && t.Mentions(n.Value) {
					t.later = append(t.later, n)
				}
			}
			return true
		})
	}
	for _, f := range files {
		t.remove(f)
	}
	t.queue = append(t.queue, rest...)
}

// settle cuts until nothing changes: what is queued, then what nobody refers to, and at
// last the strings that are still there.
func (t *tree) settle() {
	for {
		for len(t.queue) > 0 {
			n := t.queue[0]
			t.queue = t.queue[1:]
			t.kill(n)
		}
		for _, b := range t.suspects {
			t.checkReturn(b)
		}
		if t.suspects = nil; len(t.queue) > 0 {
			continue
		}
		t.meaningless()
		if t.shake(); len(t.queue) > 0 {
			continue
		}
		later := t.later
		t.later = nil
		for _, n := range later {
			if !t.isGone(n) {
				t.killString(n)
			}
		}
		if len(later) == 0 && len(t.queue) == 0 {
			return
		}
	}
}

// remove takes a node out. The uses of what it declares are queued, and so is what only
// it used: imports and variables.
func (t *tree) remove(n ast.Node) {
	if n == nil || t.isGone(n) {
		return
	}
	var declared, used []*ast.Ident
	ast.Inspect(n, func(c ast.Node) bool {
		if c != nil && t.gone[c] {
			return false
		}
		switch c := c.(type) {
		case *ast.ImportSpec:
			for pos, s := range t.imps {
				if s == c {
					t.queueUses(pos, 0, last)
				}
			}
		case *ast.Ident:
			if t.defs[c.Pos()] == c || t.redef[c.Pos()] {
				declared = append(declared, c)
			} else {
				used = append(used, c)
			}
		}
		return true
	})
	t.gone[n] = true
	for _, id := range declared {
		t.undefine(id, n)
	}
	for _, id := range used {
		t.unused(id)
	}
	t.emptied(t.parent[n])
}

// undefine queues the uses of an identifier whose declaration n is gone. A variable that
// a later statement of the same block assigns is declared there from now on.
func (t *tree) undefine(id *ast.Ident, n ast.Node) {
	of := t.fileOf(id).info.ObjectOf(id)
	if of == nil {
		t.queueUses(id.Pos(), id.Pos(), last)
		return
	}
	end := last
	if s, is := n.(*ast.AssignStmt); is && slices.Contains(s.Lhs, ast.Expr(id)) {
		for _, use := range t.uses[of.Pos()] {
			a, is := t.parent[use].(*ast.AssignStmt)
			if is && use.Pos() > id.Pos() && t.parent[a] == t.parent[s] && !t.isGone(a) && t.canDefine(a, use) {
				t.redef[use.Pos()], end = true, a.End()
				break
			}
		}
		t.queueUses(of.Pos(), id.Pos(), end)
		return
	}
	t.queueUses(of.Pos(), 0, last)
}

// last is after every position.
const last = token.Pos(1 << 62)

// queueUses queues the uses of an object that are between two positions.
func (t *tree) queueUses(of, from, to token.Pos) {
	for _, id := range t.uses[of] {
		if from <= id.Pos() && id.Pos() < to && !t.redef[id.Pos()] && !t.isGone(id) {
			t.queue = append(t.queue, id)
		}
	}
}

// canDefine reports whether the assignment of the variable can declare it: no other
// variable there is of an outer block.
func (t *tree) canDefine(a *ast.AssignStmt, id *ast.Ident) bool {
	if a.Tok != token.DEFINE && a.Tok != token.ASSIGN || !slices.Contains(a.Lhs, ast.Expr(id)) {
		return false
	}
	of := t.fileOf(a).info.ObjectOf(id)
	return !slices.ContainsFunc(a.Lhs, func(l ast.Expr) bool {
		other, is := l.(*ast.Ident)
		if !is {
			return true
		}
		o := t.fileOf(a).info.ObjectOf(other)
		return other.Name != "_" && (o == nil || o.Parent() != of.Parent())
	})
}

// unused takes out the import or the local variable that an identifier referred to, if no
// other refers to it. Go compiles neither.
func (t *tree) unused(id *ast.Ident) {
	f := t.fileOf(id)
	switch o := f.info.ObjectOf(id).(type) {
	case *types.PkgName:
		if s := t.imps[o.Pos()]; s != nil && !slices.ContainsFunc(t.uses[o.Pos()], t.alive) {
			t.remove(s)
		}
	case *types.Var:
		def := t.defs[o.Pos()]
		if def == nil || o.IsField() || o.Pkg() == nil || o.Parent() == o.Pkg().Scope() || t.isGone(def) {
			return
		}
		if _, param := t.parent[def].(*ast.Field); param || slices.ContainsFunc(t.uses[o.Pos()], t.isRead) {
			return
		}
		for _, use := range t.uses[o.Pos()] {
			t.dropVariable(use)
		}
		t.dropVariable(def)
	}
}

func (t *tree) alive(id *ast.Ident) bool { return !t.isGone(id) }

// isRead reports whether the identifier is there and more than the target of an
// assignment.
func (t *tree) isRead(id *ast.Ident) bool {
	a, is := t.parent[id].(*ast.AssignStmt)
	sets := is && (a.Tok == token.ASSIGN || a.Tok == token.DEFINE) && slices.Contains(a.Lhs, ast.Expr(id))
	return t.alive(id) && !sets
}

// dropVariable takes an unused variable out of the statement that declares or sets it.
func (t *tree) dropVariable(id *ast.Ident) {
	if t.isGone(id) || t.literal[id] != "" {
		return
	}
	switch p := t.parent[id].(type) {
	case *ast.AssignStmt:
		if _, is := t.parent[p].(*ast.TypeSwitchStmt); is {
			t.unwrap[p] = p.Rhs[0]
			t.gone[id] = true
			return
		}
		if len(p.Lhs) == 1 && t.mustRun(p) {
			t.unwrap[p] = p.Rhs[0]
			t.gone[id] = true
			return
		}
		t.killAssign(p, id)
	case *ast.RangeStmt:
		t.killRange(p, id)
	case *ast.ValueSpec:
		t.kill(id)
	}
}

// mustRun reports whether the right side of a test's assignment is a call that may matter
// though its result does not.
func (t *tree) mustRun(a *ast.AssignStmt) bool {
	c, is := a.Rhs[0].(*ast.CallExpr)
	if !is || !t.fileOf(a).test {
		return false
	}
	f := t.fileOf(a)
	v := f.info.Types[c.Fun]
	_, block := t.parent[a].(*ast.BlockStmt)
	return block && !v.IsType() && !v.IsBuiltin()
}

// refusal is something that cannot be cut, unless what it is within goes as a whole.
type refusal struct {
	of, within ast.Node
	why        string
}

// refuse notes that a node cannot be cut.
func (t *tree) refuse(n ast.Node, why string) { t.refuseIn(n, n, why) }

func (t *tree) refuseIn(within, n ast.Node, why string) {
	t.refused = append(t.refused, refusal{n, within, why})
}

// emptied cuts what is left of a node after one of its children went.
func (t *tree) emptied(n ast.Node) {
	switch n := n.(type) {
	case *ast.GenDecl:
		if allGone(t, n.Specs) {
			t.remove(n)
		}
	case *ast.DeclStmt:
		t.remove(n)
	case *ast.IfStmt:
		if v, folded := t.inline[n]; folded && !v && t.gone[n.Else] {
			t.remove(n)
		}
	case *ast.File:
		if !slices.ContainsFunc(n.Decls, func(d ast.Decl) bool {
			g, is := d.(*ast.GenDecl)
			return !t.gone[d] && (!is || g.Tok != token.IMPORT)
		}) {
			t.remove(n)
		}
	case *ast.Field:
		if len(n.Names) > 0 && allGone(t, n.Names) {
			t.remove(n)
		}
	case *ast.FieldList:
		if i, is := t.parent[n].(*ast.InterfaceType); is && allGone(t, n.List) {
			t.kill(i)
		}
	case *ast.ValueSpec:
		if allGone(t, n.Names) {
			t.remove(n)
		}
	case *ast.CaseClause:
		if n.List != nil && allGone(t, n.List) {
			t.remove(n)
		}
	case *ast.CompositeLit:
		switch t.typeOf(n).Underlying().(type) {
		case *types.Slice, *types.Array, *types.Map:
			if allGone(t, n.Elts) {
				t.kill(n)
			}
		}
	case *ast.BlockStmt:
		t.emptiedBlock(n)
	}
}

func (t *tree) emptiedBlock(n *ast.BlockStmt) {
	empty := !slices.ContainsFunc(n.List, func(s ast.Stmt) bool { return !t.gone[s] && !isHelper(s) })
	switch p := t.parent[n].(type) {
	case *ast.FuncDecl:
		if empty && p.Type.Results == nil {
			t.remove(p)
		} else {
			t.suspects = append(t.suspects, n)
		}
	case *ast.FuncLit:
		if empty && p.Type.Results == nil {
			t.kill(p)
		} else {
			t.suspects = append(t.suspects, n)
		}
	case *ast.IfStmt:
		switch {
		case empty && p.Else == n:
			t.remove(n)
		case empty && (p.Else == nil || t.gone[p.Else]):
			t.removeIf(p)
		case empty:
			t.refuse(n, "the body of an if that has an else")
		}
	default:
		if empty {
			t.remove(p)
		}
	}
}

// isHelper reports whether a statement marks a test or a helper of tests, and does
// nothing.
func isHelper(s ast.Stmt) bool {
	e, is := s.(*ast.ExprStmt)
	if !is {
		return false
	}
	text := types.ExprString(e.X)
	return strings.HasSuffix(text, ".Helper()") || strings.HasSuffix(text, ".Parallel()")
}

// checkReturn cuts or refuses a function that has lost the return at its end. One without
// a result that it works on goes.
func (t *tree) checkReturn(b *ast.BlockStmt) {
	var of *ast.FuncType
	switch p := t.parent[b].(type) {
	case *ast.FuncDecl:
		of = p.Type
	case *ast.FuncLit:
		of = p.Type
	}
	if t.isGone(b) || of.Results == nil || t.ends(b) {
		return
	}
	if !t.fileOf(b).test && !slices.ContainsFunc(of.Params.List, func(f *ast.Field) bool {
		return t.gone[f] || slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return t.gone[id] })
	}) {
		t.refuseIn(b, b.List[len(b.List)-1], "the last return of a function")
		return
	}
	t.kill(t.parent[b])
}

// ends reports whether the statement, as far as it is left, never falls through.
func (t *tree) ends(s ast.Stmt) bool {
	if s == nil || t.gone[s] {
		return false
	}
	each := func(clauses []ast.Stmt) bool {
		hasDefault := false
		for _, c := range clauses {
			if t.gone[c] {
				continue
			}
			body := []ast.Stmt(nil)
			switch c := c.(type) {
			case *ast.CaseClause:
				body, hasDefault = c.Body, hasDefault || c.List == nil
			case *ast.CommClause:
				body, hasDefault = c.Body, true
			}
			if !t.ends(&ast.BlockStmt{List: body}) {
				return false
			}
		}
		return hasDefault
	}
	switch s := s.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.ExprStmt:
		call, is := s.X.(*ast.CallExpr)
		return is && types.ExprString(call.Fun) == "panic"
	case *ast.BlockStmt:
		for _, last := range slices.Backward(s.List) {
			if !t.gone[last] {
				return t.ends(last)
			}
		}
	case *ast.IfStmt:
		if v, folded := t.inline[s]; folded {
			return v && t.ends(s.Body) || !v && t.ends(s.Else)
		}
		return t.ends(s.Body) && t.ends(s.Else)
	case *ast.ForStmt:
		return s.Cond == nil
	case *ast.SwitchStmt:
		return each(s.Body.List)
	case *ast.TypeSwitchStmt:
		return each(s.Body.List)
	case *ast.SelectStmt:
		return each(s.Body.List)
	}
	return false
}

func allGone[T ast.Node](t *tree, list []T) bool {
	return !slices.ContainsFunc(list, func(n T) bool { return !t.gone[n] })
}

func (t *tree) typeOf(e ast.Expr) types.Type {
	if f := t.fileOf(e); f != nil {
		if of := f.info.TypeOf(e); of != nil {
			return of
		}
	}
	return types.Typ[types.Invalid]
}

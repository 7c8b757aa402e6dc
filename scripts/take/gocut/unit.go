package gocut

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// kill finds the smallest unit around a node that can't stay, and cuts it.
func (t *tree) kill(n ast.Node) {
	if t.isGone(n) {
		return
	}
	if row := t.row(n, false); row != nil {
		t.remove(row)
		return
	}
	switch p := t.parent[n].(type) {
	case *ast.File, *ast.GenDecl, *ast.BlockStmt, *ast.CaseClause:
		t.drop(n)
	case *ast.ImportSpec, *ast.TypeSpec, *ast.FuncDecl, *ast.CommClause, *ast.DeclStmt, *ast.IncDecStmt,
		*ast.SendStmt, *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt, *ast.LabeledStmt, *ast.ReturnStmt, *ast.ForStmt,
		*ast.SwitchStmt, *ast.TypeSwitchStmt:
		t.drop(p)
	case *ast.ValueSpec:
		t.killValue(p, n)
	case *ast.Field:
		t.killField(p, n)
	case *ast.SelectorExpr:
		t.killSelector(p, n)
	case *ast.CallExpr:
		t.killInCall(p, n)
	case *ast.BinaryExpr:
		t.killOperand(p, n)
	case *ast.UnaryExpr:
		if p.Op == token.NOT && !t.fileOf(p).test {
			t.setBool(p, true)
		} else {
			t.kill(p)
		}
	case *ast.KeyValueExpr:
		t.killPair(p, n)
	case *ast.CompositeLit:
		t.killElement(p, n)
	case *ast.AssignStmt:
		t.killAssign(p, n)
	case *ast.IfStmt:
		t.killInIf(p, n)
	case *ast.RangeStmt:
		t.killRange(p, n)
	case nil:
		t.refuse(n, "a file as a whole")
	default:
		t.kill(p)
	}
}

// row returns the row of a test's table that holds the node, unless the node is a field
// of a struct literal: that goes alone.
//
// Without a test, the row is the one of the literal that has the node.
func (t *tree) row(n ast.Node, near bool) ast.Node {
	if f := t.fileOf(n); f == nil || !f.test && !near {
		return nil
	}
	for c := n; c != nil; c = t.parent[c] {
		switch c.(type) {
		case *ast.FuncDecl:
			return nil
		case *ast.BlockStmt:
			if near {
				return nil
			}
		}
		l, is := t.parent[c].(*ast.CompositeLit)
		if !is || l.Type == c {
			continue
		}
		if kv, is := c.(*ast.KeyValueExpr); is && kv.Key == n && isStruct(t.typeOf(l)) {
			return nil
		}
		var of types.Type
		switch u := t.typeOf(l).Underlying().(type) {
		case *types.Slice:
			of = u.Elem()
		case *types.Array:
			of = u.Elem()
		case *types.Map:
			of = u.Elem()
		default:
			continue
		}
		switch u := of.Underlying().(type) {
		case *types.Struct, *types.Signature, *types.Array, *types.Slice, *types.Map:
			return c
		case *types.Pointer:
			if isStruct(u.Elem()) {
				return c
			}
		}
	}
	return nil
}

func isStruct(of types.Type) bool {
	_, is := of.Underlying().(*types.Struct)
	return is
}

func (t *tree) killValue(p *ast.ValueSpec, n ast.Node) {
	i := slices.IndexFunc(p.Names, func(id *ast.Ident) bool { return ast.Node(id) == n })
	v := slices.IndexFunc(p.Values, func(e ast.Expr) bool { return ast.Node(e) == n })
	pairs := len(p.Names) == len(p.Values)
	switch {
	case len(p.Names) == 1 || i < 0 && v < 0 || v >= 0 && !pairs:
		t.remove(p)
	case i >= 0 && len(p.Values) > 0 && !pairs:
		t.blank(p.Names[i])
	default:
		i = max(i, v)
		t.remove(p.Names[i])
		if pairs {
			t.remove(p.Values[i])
		}
	}
}

// blank replaces a declared name by the blank identifier.
func (t *tree) blank(e ast.Expr) {
	if t.literal[e] == "" {
		t.literal[e] = "_"
		if id, is := e.(*ast.Ident); is && (t.defs[id.Pos()] == id || t.redef[id.Pos()]) {
			t.undefine(id, id)
		}
	}
}

func (t *tree) killField(p *ast.Field, n ast.Node) {
	list := t.parent[p].(*ast.FieldList)
	unit := ast.Node(p)
	if len(p.Names) > 1 && n != ast.Node(p.Type) {
		unit = n
	}
	switch owner := t.parent[list].(type) {
	case *ast.StructType, *ast.InterfaceType:
		t.remove(unit)
	case *ast.FuncType:
		if list != owner.Params {
			t.kill(owner)
		} else if lit, is := t.parent[owner].(*ast.FuncLit); is {
			t.kill(lit)
		} else {
			t.dropParameter(owner, p, unit)
		}
	default: // the receiver
		t.kill(list)
	}
}

// dropParameter takes a parameter out of a function, or all of a field, and its argument
// out of each call.
func (t *tree) dropParameter(of *ast.FuncType, p *ast.Field, unit ast.Node) {
	var from, to, i int
	for _, f := range of.Params.List {
		start := i
		for _, name := range f.Names {
			if ast.Node(name) == unit {
				from, to = i, i+1
			}
			i++
		}
		if len(f.Names) == 0 {
			i++
		}
		if ast.Node(f) == unit {
			from, to = start, i
		}
	}
	if _, variadic := p.Type.(*ast.Ellipsis); variadic {
		to = 1 << 30
	}
	t.remove(unit)
	var names []*ast.Ident
	switch d := t.parent[of].(type) {
	case *ast.FuncDecl:
		names = []*ast.Ident{d.Name}
	case *ast.Field:
		names = d.Names
	case *ast.ValueSpec:
		names = d.Names
	}
	for _, name := range names {
		for _, use := range t.uses[name.Pos()] {
			if call := t.callOf(use); call != nil {
				for i := from; i < min(to, len(call.Args)); i++ {
					t.remove(call.Args[i])
				}
			}
		}
	}
}

// callOf returns the call of the function that the identifier names.
func (t *tree) callOf(id *ast.Ident) *ast.CallExpr {
	e := ast.Node(id)
	for {
		switch p := t.parent[e].(type) {
		case *ast.SelectorExpr:
			if p.Sel != e {
				return nil
			}
			e = p
		case *ast.IndexExpr, *ast.IndexListExpr, *ast.ParenExpr:
			e = p
		case *ast.CallExpr:
			if p.Fun == e {
				return p
			}
			return nil
		default:
			return nil
		}
	}
}

// killSelector leaves the receiver of a method that returns its own type.
func (t *tree) killSelector(p *ast.SelectorExpr, n ast.Node) {
	call, is := t.parent[p].(*ast.CallExpr)
	of := t.typeOf(p.X)
	if _, statement := t.parent[call].(*ast.ExprStmt); is && n == p.Sel && call.Fun == p && !statement &&
		of != types.Typ[types.Invalid] && types.Identical(t.typeOf(call), of) {
		t.unwrap[call] = p.X
		for _, a := range call.Args {
			t.remove(a)
		}
		t.gone[n] = true
		return
	}
	t.kill(p)
}

func (t *tree) killInCall(p *ast.CallExpr, n ast.Node) {
	sig, is := t.typeOf(p.Fun).Underlying().(*types.Signature)
	i := slices.IndexFunc(p.Args, func(a ast.Expr) bool { return ast.Node(a) == n })
	if !t.fileOf(p).test && len(p.Args) == 2 && strings.HasSuffix(types.ExprString(p.Fun), ".Equal") &&
		t.doomed(p.Args[0]) && t.doomed(p.Args[1]) {
		t.setBool(p, true)
		return
	}
	if i < 0 || !is || !sig.Variadic() || i < sig.Params().Len()-1 || p.Ellipsis.IsValid() || formats(p.Args) {
		t.kill(p)
		return
	}
	others := func(a ast.Expr) bool { return a != n && !t.gone[a] }
	if first := sig.Params().Len() - 1; slices.ContainsFunc(p.Args[first:], others) {
		t.remove(n)
	} else if id, builtin := p.Fun.(*ast.Ident); builtin && id.Name == "append" && !t.appendsToItself(p) {
		t.remove(n)
		t.unwrap[p] = p.Args[0]
	} else {
		t.kill(p)
	}
}

func (t *tree) appendsToItself(p *ast.CallExpr) bool {
	a, is := t.parent[p].(*ast.AssignStmt)
	return is && len(a.Lhs) == 1 && types.ExprString(a.Lhs[0]) == types.ExprString(p.Args[0])
}

// formats reports whether the arguments begin with a format.
func formats(args []ast.Expr) bool {
	for _, a := range args {
		if l, is := a.(*ast.BasicLit); is && strings.Contains(l.Value, "%") {
			return true
		}
	}
	return false
}

// killOperand lets an operand that can't stay count as false, and as the zero value in a
// comparison or sum.
func (t *tree) killOperand(p *ast.BinaryExpr, n ast.Node) {
	other := p.Y
	if n == p.Y {
		other = p.X
	}
	f := t.fileOf(p)
	switch p.Op { //nolint:exhaustive // the others
	case token.LAND, token.LOR:
		if !f.test {
			t.setBool(n.(ast.Expr), false)
		} else if t.gone[other] {
			t.kill(p)
		} else {
			t.remove(n)
		}
	case token.OR: // of types
		t.remove(n)
	case token.ADD, token.SUB:
		b, is := t.typeOf(p).Underlying().(*types.Basic)
		if is && b.Info()&types.IsNumeric != 0 && (n == p.Y || p.Op == token.ADD) && !t.gone[other] {
			t.remove(n)
		} else {
			t.kill(p)
		}
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		if v, known := t.compare(p, n, other); known && !f.test {
			t.setBool(p, v)
		} else {
			t.kill(p)
		}
	default:
		t.kill(p)
	}
}

// compare returns the value of a comparison with a missing thing, which equals its zero
// value and other missing things, and nothing else.
func (t *tree) compare(p *ast.BinaryExpr, n ast.Node, other ast.Expr) (v, known bool) {
	values := t.fileOf(p).info.Types
	id, is := other.(*ast.Ident)
	equal := is && id.Name == "nil" || isZero(other)
	switch c := values[other].Value; {
	case c != nil && c.Kind() == constant.Int:
		x, y := constant.MakeInt64(0), c
		if n == p.Y {
			x, y = y, x
		}
		return constant.Compare(x, p.Op, y), true
	case c != nil:
		equal = c.ExactString() == `""` || c.ExactString() == "false"
	case !equal:
		equal = t.doomed(other) && values[n.(ast.Expr)].Value == nil && !isZero(n.(ast.Expr))
	}
	return equal == (p.Op == token.EQL), p.Op == token.EQL || p.Op == token.NEQ
}

func isZero(e ast.Expr) bool {
	l, is := ast.Unparen(e).(*ast.CompositeLit)
	return is && len(l.Elts) == 0
}

// setBool puts a constant in the place of a condition and folds what is around it.
func (t *tree) setBool(n ast.Expr, v bool) {
	if t.isGone(n) {
		return
	}
	switch p := t.parent[n].(type) {
	case *ast.ParenExpr:
		t.setBool(p, v)
	case *ast.UnaryExpr:
		t.setBool(p, !v)
	case *ast.BinaryExpr:
		other := p.X
		if n == p.X {
			other = p.Y
		}
		if p.Op != token.LAND && p.Op != token.LOR {
			t.kill(p)
		} else if v != (p.Op == token.LAND) || t.gone[other] {
			t.setBool(p, v)
		} else {
			t.remove(n)
		}
	case *ast.IfStmt:
		t.fold(p, v)
	case *ast.CaseClause:
		if v {
			t.refuse(n, "a case that is always true")
		} else {
			t.remove(n)
		}
	case *ast.ReturnStmt:
		t.literal[n] = map[bool]string{true: "true", false: "false"}[v]
		t.remove(n)
	default:
		t.kill(n)
	}
}

// fold resolves an if statement with a constant condition.
func (t *tree) fold(p *ast.IfStmt, v bool) {
	switch {
	case !v && (p.Else == nil || t.gone[p.Else]):
		t.removeIf(p)
	case p.Init != nil && !t.gone[p.Init]:
		t.refuse(p, "an if with a constant condition and a statement before it")
	default:
		t.inline[p] = v
		t.remove(p.Cond)
		if !v {
			t.remove(p.Body)
			return
		}
		if p.Else != nil {
			t.remove(p.Else)
		}
		t.endAt(p)
	}
}

// removeIf takes out an if statement. A statement before its condition that declares
// nothing stays: it may matter.
func (t *tree) removeIf(p *ast.IfStmt) {
	if a, is := p.Init.(*ast.AssignStmt); p.Init == nil || is && a.Tok == token.DEFINE || t.isGone(p.Init) {
		t.remove(p)
		return
	}
	t.unwrap[p] = p.Init
	t.remove(p.Cond)
	t.remove(p.Body)
	if p.Else != nil {
		t.remove(p.Else)
	}
}

// endAt removes the statements after one that is always taken and ends its block.
func (t *tree) endAt(p *ast.IfStmt) {
	block, is := t.parent[p].(*ast.BlockStmt)
	if is && t.ends(p) {
		for _, s := range block.List[slices.Index(block.List, ast.Stmt(p))+1:] {
			t.remove(s)
		}
	}
}

func (t *tree) killInIf(p *ast.IfStmt, n ast.Node) {
	switch {
	case n != p.Cond:
		t.drop(n)
	case t.fileOf(p).test:
		t.drop(p)
	default:
		t.setBool(p.Cond, false)
	}
}

// killPair takes a key with its value out of a literal. A field that stays does not lose
// its value silently: a test goes as a whole.
func (t *tree) killPair(p *ast.KeyValueExpr, n ast.Node) {
	l := t.parent[p].(*ast.CompositeLit)
	key, is := p.Key.(*ast.Ident)
	if !is || n != p.Value || !isStruct(t.typeOf(l)) || t.doomed(key) {
		t.kill(p)
	} else if row := t.row(p, true); row != nil {
		t.remove(row)
	} else if t.fileOf(p).test {
		t.kill(l)
	} else {
		t.refuseIn(l, p.Key, "the value of the field "+key.Name+", which stays")
		t.kill(p)
	}
}

// mentioned reports whether the text of a node mentions a missing part itself.
func (t *tree) mentioned(n ast.Node) bool {
	f := t.fileOf(n)
	at := t.fset.File(n.Pos())
	return t.Mentions(string(f.src[at.Offset(n.Pos()):at.Offset(n.End())]))
}

// doomed reports whether the expression refers to something that mentions a missing part
// or is cut.
func (t *tree) doomed(e ast.Node) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is {
			o := t.fileOf(id).info.ObjectOf(id)
			found = found || t.Mentions(id.Name) || o != nil && t.defs[o.Pos()] != nil && t.isGone(t.defs[o.Pos()])
		}
		return !found
	})
	return found
}

// killElement takes an element out of a literal. One of a struct without keys takes the
// literal along, unless its field goes too.
func (t *tree) killElement(p *ast.CompositeLit, n ast.Node) {
	_, keyed := n.(*ast.KeyValueExpr)
	s, is := t.typeOf(p).Underlying().(*types.Struct)
	switch i := slices.IndexFunc(p.Elts, func(e ast.Expr) bool { return ast.Node(e) == n }); {
	case i < 0, !keyed && !is && t.isInTest(p) && !t.mentioned(n):
		t.kill(p)
	case keyed || !is:
		t.remove(n)
	case i < s.NumFields() && t.defs[s.Field(i).Pos()] != nil && t.isGone(t.defs[s.Field(i).Pos()]):
		t.remove(n)
	default:
		t.kill(p)
	}
}

func (t *tree) killAssign(p *ast.AssignStmt, n ast.Node) {
	l := slices.IndexFunc(p.Lhs, func(e ast.Expr) bool { return ast.Node(e) == n })
	r := slices.IndexFunc(p.Rhs, func(e ast.Expr) bool { return ast.Node(e) == n })
	switch t.parent[p].(type) {
	case *ast.TypeSwitchStmt, *ast.ForStmt, *ast.CommClause:
		t.kill(p)
		return
	}
	switch {
	case len(p.Lhs) == 1 || len(p.Rhs) == 1 && r >= 0:
		t.drop(p)
	case len(p.Lhs) == len(p.Rhs):
		i := max(l, r)
		t.remove(p.Lhs[i])
		t.remove(p.Rhs[i])
		if allGone(t, p.Lhs) {
			t.remove(p)
		}
	default:
		t.blank(p.Lhs[l])
		blank := func(e ast.Expr) bool { return t.literal[e] == "_" || types.ExprString(e) == "_" }
		if !slices.ContainsFunc(p.Lhs, func(e ast.Expr) bool { return !blank(e) }) {
			t.remove(p)
		}
	}
}

func (t *tree) killRange(p *ast.RangeStmt, n ast.Node) {
	switch n {
	case p.Value:
		t.remove(n)
	case p.Key:
		if p.Value == nil || t.gone[p.Value] {
			t.remove(n)
		} else {
			t.blank(p.Key)
		}
	default:
		t.drop(p)
	}
}

// killString cuts a text that mentions a missing part, where it is one of many.
func (t *tree) killString(n ast.Node) {
	test := t.fileOf(n).test
	for e := n; ; e = t.parent[e] {
		switch p := t.parent[e].(type) {
		case *ast.BinaryExpr:
			if p.Op != token.ADD {
				t.kill(e)
				return
			}
		case *ast.ParenExpr:
		case *ast.KeyValueExpr, *ast.CompositeLit, *ast.CaseClause:
			t.kill(e)
			return
		case *ast.ValueSpec:
			if !test {
				t.refuse(n, "the text of "+p.Names[0].Name)
				return
			}
			t.kill(e)
			return
		case *ast.CallExpr:
			_, statement := t.parent[p].(*ast.ExprStmt)
			sig, is := t.typeOf(p.Fun).Underlying().(*types.Signature)
			switch {
			case is && takesMany(sig) && ast.Node(p.Fun) != e:
				t.kill(e)
				return
			case statement || test:
				t.kill(p)
				return
			case is:
				t.refuse(n, "a text in a call: "+n.(*ast.BasicLit).Value)
				return
			}
		default:
			if test {
				t.kill(e)
			} else {
				t.refuse(n, "a text: "+n.(*ast.BasicLit).Value)
			}
			return
		}
	}
}

// takesMany reports whether the last parameter is a list of something that is not
// printed.
func takesMany(sig *types.Signature) bool {
	if !sig.Variadic() {
		return false
	}
	of, is := sig.Params().At(sig.Params().Len() - 1).Type().(*types.Slice)
	return is && !types.IsInterface(of.Elem())
}

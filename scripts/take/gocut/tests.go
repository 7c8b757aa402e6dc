package gocut

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

var (
	testName  = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`)
	assertion = regexp.MustCompile(`\.(Error|Errorf|Log|Logf)$`)
)

// drop takes out a statement, or the declaration around it. In a test it takes the whole
// test, or the whole subtest, if what is left would no longer do what it claims: only a
// check, a subtest or the definition of a value goes alone.
func (t *tree) drop(n ast.Node) {
	s, is := n.(ast.Stmt)
	around := t.functionAround(n)
	if !is || around == nil || !t.fileOf(n).test {
		t.remove(n)
		return
	}
	for p := ast.Node(s); p != around; p = t.parent[p] {
		if i, is := p.(*ast.IfStmt); is && t.checks(i) {
			s = i
		}
	}
	if t.goesAlone(s, !testName.MatchString(around.Name.Name)) {
		t.remove(s)
		return
	}
	for p := t.parent[s]; p != around; p = t.parent[p] {
		if e, is := p.(*ast.ExprStmt); is && isSubtest(e) {
			t.remove(e)
			return
		}
	}
	t.remove(around)
}

// goesAlone reports whether a statement of a test, or of a helper of tests, may go
// without the rest.
func (t *tree) goesAlone(s ast.Stmt, helper bool) bool {
	switch s := s.(type) {
	case *ast.IfStmt:
		return helper || t.checks(s)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return helper || !t.acts(s.Rhs[0]) && t.servesRows(s)
		}
		more, is := s.Rhs[0].(*ast.CallExpr)
		return !slices.ContainsFunc(s.Lhs, func(l ast.Expr) bool { return !t.doomed(l) }) ||
			helper && is && t.appendsToItself(more)
	case *ast.DeclStmt:
		return helper || t.servesRows(s)
	case *ast.ExprStmt:
		return helper || isSubtest(s)
	case *ast.RangeStmt, *ast.ForStmt:
		return false
	}
	return helper
}

// acts reports whether the expression is a call that may change something: it can fail,
// or is a method of a variable.
func (t *tree) acts(e ast.Expr) bool {
	call, is := e.(*ast.CallExpr)
	if !is {
		return false
	}
	f := t.fileOf(e)
	if sel, is := call.Fun.(*ast.SelectorExpr); is {
		if x, is := sel.X.(*ast.Ident); !is || t.imps[f.posOf(x)] == nil {
			return true
		}
	}
	sig, is := t.typeOf(call.Fun).Underlying().(*types.Signature)
	return is && sig.Results().Len() > 1
}

// posOf returns where what the identifier refers to is declared.
func (f *file) posOf(id *ast.Ident) token.Pos {
	if o := f.info.ObjectOf(id); o != nil {
		return o.Pos()
	}
	return token.NoPos
}

// meaningless takes out the tests that lost a statement and check nothing any more.
func (t *tree) meaningless() {
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			of, is := d.(*ast.FuncDecl)
			if !is || !f.test || t.isGone(of) || !testName.MatchString(of.Name.Name) {
				continue
			}
			lost, checks := false, false
			ast.Inspect(of.Body, func(n ast.Node) bool {
				if lost = lost || t.gone[n]; n == nil || t.gone[n] {
					return false
				}
				switch n := n.(type) {
				case *ast.ExprStmt:
					checks = checks || !isHelper(n) && !isSubtest(n)
				case *ast.FuncLit:
					_, isArgument := t.parent[n].(*ast.CallExpr)
					checks = checks || !isArgument
				}
				return true
			})
			if lost && !checks {
				t.remove(of)
			}
		}
	}
}

// servesRows reports whether what a statement declares is used in rows of tables and in
// checks alone, and in other declarations.
func (t *tree) servesRows(s ast.Stmt) bool {
	serves := true
	ast.Inspect(s, func(n ast.Node) bool {
		id, is := n.(*ast.Ident)
		if !is || t.defs[id.Pos()] != id {
			return true
		}
		for _, use := range t.uses[id.Pos()] {
			serves = serves && (t.isGone(use) || t.row(use, false) != nil || t.isInDefinitionOrCheck(use))
		}
		return true
	})
	return serves
}

func (t *tree) isInDefinitionOrCheck(n ast.Node) bool {
	for ; n != nil; n = t.parent[n] {
		switch n := n.(type) {
		case *ast.IfStmt:
			return t.checks(n)
		case *ast.AssignStmt:
			if _, is := t.parent[n].(*ast.BlockStmt); is {
				return n.Tok == token.DEFINE
			}
		case *ast.DeclStmt:
			return true
		case *ast.BlockStmt:
			if i, is := t.parent[n].(*ast.IfStmt); !is || !t.checks(i) {
				return false
			}
		}
	}
	return false
}

// functionAround returns the function or method that has the node, or nil.
func (t *tree) functionAround(n ast.Node) *ast.FuncDecl {
	for ; n != nil; n = t.parent[n] {
		if f, is := n.(*ast.FuncDecl); is {
			return f
		}
	}
	return nil
}

// isInTest reports whether the node is in a test function.
func (t *tree) isInTest(n ast.Node) bool {
	f := t.functionAround(n)
	return f != nil && t.fileOf(f).test && f.Recv == nil && testName.MatchString(f.Name.Name)
}

// checks reports whether the statement only compares and reports.
func (t *tree) checks(i *ast.IfStmt) bool {
	return i.Else == nil && !slices.ContainsFunc(i.Body.List, func(s ast.Stmt) bool {
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, is := s.X.(*ast.CallExpr)
			return !is || !assertion.MatchString(types.ExprString(call.Fun))
		case *ast.BranchStmt:
			return false
		case *ast.IfStmt:
			return !t.checks(s)
		}
		return true
	})
}

func isSubtest(s *ast.ExprStmt) bool {
	call, is := s.X.(*ast.CallExpr)
	return is && strings.HasSuffix(types.ExprString(call.Fun), ".Run")
}

package gocut

import (
	"context"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// file is a parsed file with the types of the largest package that has it: the package
// with its internal tests.
type file struct {
	path string // from the root of the tree
	name string // absolute
	src  []byte
	ast  *ast.File
	pkg  *types.Package
	info *types.Info
	dir  string
	test bool // _test.go
}

// tree is a loaded tree, and what is cut of it so far. An object is known by the position
// of its declaration, which all variants of a package share.
type tree struct {
	Options
	dir    string
	fset   *token.FileSet
	files  []*file
	errs   []packages.Error
	before *history

	parent map[ast.Node]ast.Node
	defs   map[token.Pos]*ast.Ident
	imps   map[token.Pos]*ast.ImportSpec
	uses   map[token.Pos][]*ast.Ident
	object map[token.Pos]types.Object
	of     map[*ast.File]*file

	gone     map[ast.Node]bool
	literal  map[ast.Expr]string   // what stands for an expression instead
	inline   map[*ast.IfStmt]bool  // the constant value of a condition
	unwrap   map[ast.Node]ast.Node // a part of it stands for a node
	redef    map[token.Pos]bool    // identifiers that define a variable now
	refused  []refusal
	queue    []ast.Node
	suspects []*ast.BlockStmt // of functions that may have lost their last return
	later    []ast.Node       // strings, whose statements may go for another reason
}

const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedDeps | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedModule

// load type-checks all modules of the tree together, with their tests.
func load(ctx context.Context, dir string, o Options) (*tree, error) {
	t := &tree{
		Options: o, dir: dir, fset: token.NewFileSet(),
		parent: map[ast.Node]ast.Node{}, defs: map[token.Pos]*ast.Ident{}, imps: map[token.Pos]*ast.ImportSpec{},
		uses: map[token.Pos][]*ast.Ident{}, object: map[token.Pos]types.Object{}, of: map[*ast.File]*file{},
		gone: map[ast.Node]bool{}, literal: map[ast.Expr]string{}, inline: map[*ast.IfStmt]bool{},
		unwrap: map[ast.Node]ast.Node{}, redef: map[token.Pos]bool{},
	}
	work, patterns, err := workspace(dir, o.Modules)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Dir(work)) //nolint:errcheck // a temporary folder
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Mode: mode, Dir: dir, Tests: true, Fset: t.fset, ParseFile: parser(dir),
		Env: append((&exec.Cmd{}).Environ(), "GOWORK="+work),
	}, patterns...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(loaded, func(a, b *packages.Package) int { return len(b.Syntax) - len(a.Syntax) })
	for _, p := range loaded {
		t.errs = append(t.errs, p.Errors...)
		for _, f := range p.Syntax {
			if err := t.add(p, f); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// parser returns a parser that leaves out the bodies of functions outside the tree, which
// nobody reads.
func parser(dir string) func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	return func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
		f, err := goparser.ParseFile(fset, name, src, goparser.ParseComments|goparser.SkipObjectResolution)
		generated := filepath.Ext(name) != ".go" // in the build cache
		if err != nil || generated || strings.HasPrefix(name, dir+string(filepath.Separator)) {
			return f, err
		}
		for _, d := range f.Decls {
			if function, is := d.(*ast.FuncDecl); is {
				function.Body = nil
			}
		}
		return f, nil
	}
}

// workspace writes a go.work of the modules to a folder of its own.
func workspace(dir string, modules []string) (file string, patterns []string, err error) {
	folder, err := os.MkdirTemp("", "gocut")
	if err != nil {
		return "", nil, err
	}
	text := []string{"go 1.26.0"}
	for _, m := range modules {
		text = append(text, fmt.Sprintf("use %q", filepath.Join(dir, m)))
		patterns = append(patterns, "./"+filepath.ToSlash(filepath.Join(m, "...")))
	}
	file = filepath.Join(folder, "go.work")
	return file, patterns, os.WriteFile(file, []byte(strings.Join(text, "\n")), 0o600)
}

func (t *tree) add(p *packages.Package, f *ast.File) error {
	name := t.fset.Position(f.Package).Filename
	path := t.rel(name)
	if t.of[f] != nil || strings.HasPrefix(path, "..") || !strings.HasSuffix(path, ".go") {
		return nil // a variant has it too, or it is generated in the build cache
	}
	src, err := os.ReadFile(name) //nolint:gosec // G304: a file of the tree
	if err != nil {
		return err
	}
	x := &file{
		path: path, name: name, src: src, ast: f, pkg: p.Types, info: p.TypesInfo,
		dir: filepath.Dir(path), test: strings.HasSuffix(path, "_test.go"),
	}
	t.files, t.of[f] = append(t.files, x), x
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			t.parent[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		switch n := n.(type) {
		case *ast.Ident:
			t.identify(x, n)
		case *ast.ImportSpec:
			if o := p.TypesInfo.Implicits[n]; o != nil {
				t.imps[o.Pos()] = n
			} else if n.Name != nil {
				t.imps[n.Name.Pos()] = n
			}
		}
		return true
	})
	return nil
}

// identify notes what the identifier defines and refers to. That of an embedded field
// does both.
func (t *tree) identify(f *file, id *ast.Ident) {
	if o := f.info.Defs[id]; o != nil {
		t.defs[id.Pos()], t.object[id.Pos()] = id, o
	} else if t.isTypeSwitch(id) {
		t.defs[id.Pos()] = id
	}
	if o := f.info.Uses[id]; o != nil && o.Pos().IsValid() {
		t.uses[o.Pos()] = append(t.uses[o.Pos()], id)
		if t.object[o.Pos()] == nil {
			t.object[o.Pos()] = o
		}
	}
}

func (t *tree) isTypeSwitch(id *ast.Ident) bool {
	a, is := t.parent[id].(*ast.AssignStmt)
	if !is || len(a.Lhs) != 1 || a.Lhs[0] != ast.Expr(id) {
		return false
	}
	_, is = t.parent[a].(*ast.TypeSwitchStmt)
	return is
}

// fileOf returns the file of a node.
func (t *tree) fileOf(n ast.Node) *file {
	for ; n != nil; n = t.parent[n] {
		if f, is := n.(*ast.File); is {
			return t.of[f]
		}
	}
	return nil
}

// isGone reports whether the node, or one around it, is cut.
func (t *tree) isGone(n ast.Node) bool {
	for ; n != nil; n = t.parent[n] {
		if t.gone[n] {
			return true
		}
	}
	return false
}

// qualified returns the name that Options.Names knows of a declared identifier, or "".
func (t *tree) qualified(f *file, id *ast.Ident) string {
	if f.info.Defs[id] == nil {
		return ""
	}
	dir := filepath.ToSlash(f.dir) + "."
	switch p := t.parent[id].(type) {
	case *ast.FuncDecl:
		if p.Recv != nil && len(p.Recv.List) > 0 {
			return dir + strings.TrimPrefix(types.ExprString(p.Recv.List[0].Type), "*") + "." + id.Name
		}
		return dir + id.Name
	case *ast.TypeSpec, *ast.ValueSpec:
		if _, is := t.parent[t.parent[p]].(*ast.File); is {
			return dir + id.Name
		}
	case *ast.Field:
		if of, is := t.parent[t.parent[t.parent[p]]].(*ast.TypeSpec); is {
			return dir + of.Name.Name + "." + id.Name
		}
	}
	return ""
}

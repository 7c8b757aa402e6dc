package gocut

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// history is what referred to what before the first cut, by qualified name and by the
// path of a package.
type history struct{ used, implements, imported map[string]bool }

// declaration is a package-level declaration, a method, or a method of an interface.
type declaration struct {
	id        *ast.Ident
	name      string // qualified
	of        *ast.Ident
	signature string      // of a method
	uses      []token.Pos // what its text refers to
	live      bool
}

// declarations returns all that are still there, by position.
func (t *tree) declarations() map[token.Pos]*declaration {
	all := map[token.Pos]*declaration{}
	for _, f := range t.files {
		if t.gone[f.ast] {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if n == nil || t.gone[n] {
				return false
			}
			id, is := n.(*ast.Ident)
			if !is || t.defs[id.Pos()] != id {
				return true
			}
			if name := t.qualified(f, id); name != "" && id.Name != "_" {
				if d := t.declare(f, id, name); d != nil {
					all[id.Pos()] = d
				}
			}
			return true
		})
	}
	for pos, ids := range t.uses {
		for _, id := range ids {
			if !t.alive(id) || t.isWeak(id, pos) {
				continue
			}
			for _, owner := range t.owners(id) {
				if d := all[owner.Pos()]; d != nil {
					d.uses = append(d.uses, pos)
				}
			}
		}
	}
	return all
}

func (t *tree) declare(f *file, id *ast.Ident, name string) *declaration {
	d := &declaration{id: id, name: name}
	switch p := t.parent[id].(type) {
	case *ast.FuncDecl:
		if p.Recv != nil {
			d.signature = signature(f.info.Defs[id])
			ast.Inspect(p.Recv.List[0].Type, func(n ast.Node) bool {
				if of, is := n.(*ast.Ident); is && d.of == nil {
					d.of = t.defs[f.info.ObjectOf(of).Pos()]
				}
				return true
			})
		}
	case *ast.Field:
		if _, is := p.Type.(*ast.FuncType); !is {
			return nil
		}
		if _, is := t.parent[t.parent[p]].(*ast.InterfaceType); !is {
			return nil
		}
		of := t.parent[t.parent[t.parent[p]]].(*ast.TypeSpec).Name
		d.of, d.signature = of, signature(f.info.Defs[id])
	}
	return d
}

// signature returns the name of a method and the types of its parameters and results,
// which are the same in all variants of a package.
func signature(o types.Object) string {
	of := o.Type().(*types.Signature)
	text := []string{o.Name()}
	for _, list := range []*types.Tuple{of.Params(), of.Results()} {
		for v := range list.Variables() {
			text = append(text, types.TypeString(v.Type(), nil))
		}
		text = append(text, ";")
	}
	return strings.Join(text, " ")
}

// isWeak reports whether the identifier is in a test function of the package that
// declares what it refers to. Such a test keeps nothing.
func (t *tree) isWeak(id *ast.Ident, pos token.Pos) bool {
	f, def := t.fileOf(id), t.defs[pos]
	if def == nil || !f.test || !t.isInTest(id) {
		return false
	}
	of := t.fileOf(def)
	return !of.test && of.dir == f.dir
}

// owners returns the names of the package-level declaration around the identifier.
func (t *tree) owners(id *ast.Ident) []*ast.Ident {
	var spec ast.Spec
	for n := ast.Node(id); n != nil; n = t.parent[n] {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return []*ast.Ident{n.Name}
		case ast.Spec:
			spec = n
		}
	}
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{s.Name}
	case *ast.ValueSpec:
		return s.Names
	}
	return nil
}

// foreign returns the signatures of the methods of each interface that packages outside
// the tree declare or ask for.
func (t *tree) foreign() map[string]bool {
	all := map[string]bool{"Error ; string ;": true, "String ; string ;": true, "Unwrap ; error ;": true}
	collect := func(of types.Type) {
		if i, is := of.Underlying().(*types.Interface); is {
			for m := range i.Methods() {
				all[signature(m)] = true
			}
		}
	}
	for pos := range t.uses {
		o := t.object[pos]
		if t.defs[pos] != nil || o == nil || o.Type() == nil {
			continue
		}
		collect(o.Type())
		if s, is := o.Type().Underlying().(*types.Signature); is {
			for v := range s.Params().Variables() {
				collect(v.Type())
			}
		}
	}
	return all
}

// remember notes what is used before anything is cut.
func (t *tree) remember() *history {
	h := &history{used: map[string]bool{}, implements: map[string]bool{}, imported: t.imported()}
	all := t.declarations()
	wanted := map[string]bool{}
	for pos, d := range all {
		for _, use := range d.uses {
			if of := all[use]; of != nil && use != pos {
				h.used[of.name] = true
			}
		}
		if _, is := t.parent[d.id].(*ast.Field); is {
			wanted[d.signature] = true
		}
	}
	for _, d := range all {
		h.implements[d.name] = d.signature != "" && wanted[d.signature]
	}
	return h
}

// imported returns the packages that another package of the tree imports.
func (t *tree) imported() map[string]bool {
	all := map[string]bool{}
	for _, f := range t.files {
		for _, s := range f.ast.Imports {
			path := strings.Trim(s.Path.Value, `"`)
			all[path] = all[path] || path != strings.TrimSuffix(f.pkg.Path(), "_test") && !t.isGone(s)
		}
	}
	return all
}

// shake cuts what something referred to before the first cut, and nothing does now.
func (t *tree) shake() {
	imported := t.imported()
	for _, f := range t.files {
		path := strings.TrimSuffix(f.pkg.Path(), "_test")
		if t.before.imported[path] && !imported[path] && f.pkg.Name() != "main" {
			t.remove(f.ast)
		}
	}
	all := t.declarations()
	t.mark(all)
	for _, d := range all {
		if !d.live {
			t.queue = append(t.queue, d.id)
		}
	}
	t.shakeFields()
	slices.SortFunc(t.queue, func(a, b ast.Node) int { return int(a.Pos() - b.Pos()) })
}

// shakeFields cuts the unexported fields, and blanks the parameters, of which every use
// is gone.
func (t *tree) shakeFields() {
	for pos, ids := range t.uses {
		id := t.defs[pos]
		if id == nil || !t.alive(id) || slices.ContainsFunc(ids, t.alive) {
			continue
		}
		field, is := t.parent[id].(*ast.Field)
		if !is {
			continue
		}
		switch p := t.parent[t.parent[field]].(type) {
		case *ast.FuncType:
			if p.Params == t.parent[field] && t.hasBody(p) && len(field.Names) > 0 {
				t.blank(id)
			}
		case *ast.StructType:
			if !id.IsExported() {
				t.queue = append(t.queue, id)
			}
		}
	}
}

// hasBody reports whether the type is that of a function, and not of a field or variable.
func (t *tree) hasBody(p *ast.FuncType) bool {
	switch t.parent[p].(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		return true
	}
	return false
}

// mark finds the declarations that are in use: those that nothing used before, and what
// they refer to. A method is in use with its type if it is called, or an interface asks
// for it.
func (t *tree) mark(all map[token.Pos]*declaration) {
	wanted := t.foreign()
	var stack []*declaration
	push := func(d *declaration) {
		if d != nil && !d.live {
			d.live = true
			stack = append(stack, d)
		}
	}
	referred := map[token.Pos]bool{}
	for {
		for _, d := range all {
			_, ofInterface := t.parent[d.id].(*ast.Field)
			switch {
			case d.live:
			case d.of == nil:
				if !t.before.used[d.name] {
					push(d)
				}
			case all[d.of.Pos()] == nil || !all[d.of.Pos()].live:
			case referred[d.id.Pos()], !ofInterface && wanted[d.signature],
				!t.before.used[d.name] && (ofInterface || !t.before.implements[d.name]):
				push(d)
			}
			if d.live && ofInterface {
				wanted[d.signature] = true
			}
		}
		if len(stack) == 0 {
			return
		}
		for len(stack) > 0 {
			d := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, use := range d.uses {
				if of := all[use]; of != nil && of.of == nil {
					push(of)
				} else if of != nil {
					referred[use] = true
				}
			}
		}
	}
}

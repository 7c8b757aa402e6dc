package textcut

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Terraform cuts the files of modules and their tests, by path. After files whose path
// mentions missing parts, and what mentions them in others, it removes what refers to
// something removed, and the locals and variables that nothing refers to any more, until
// nothing changes. A file that holds nothing any more is missing in the result.
func Terraform(files map[string][]byte, mentions func(text string) bool) (map[string][]byte, error) {
	now := maps.Clone(files)
	maps.DeleteFunc(now, func(name string, _ []byte) bool { return mentions(name) })
	before := modules(files)
	for {
		after := modules(now)
		changed := false
		var refused []error
		for _, name := range slices.Sorted(maps.Keys(now)) {
			c := &cutter{path: name, src: string(now[name]), mentions: mentions}
			out, err := cutHCL(c, gone(before, after, name))
			if refused = append(refused, err); err != nil || string(out) == string(now[name]) {
				continue
			}
			changed = true
			if now[name] = out; out == nil {
				delete(now, name)
			}
		}
		if err := errors.Join(refused...); err != nil || !changed {
			return now, err
		}
	}
}

// module is what a folder defines, what it refers to, and the folders of the modules that
// it calls.
type module struct {
	defined, used map[string]bool
	calls         map[string]string
}

// moduleOf returns the folder of the module that a file belongs to: tests stand in a
// folder below it.
func moduleOf(name string) string {
	folder, _, _ := strings.Cut(path.Dir(name)+"/", "/tests/")
	return strings.TrimSuffix(folder, "/")
}

func modules(files map[string][]byte) map[string]*module {
	all := map[string]*module{}
	for name, src := range files {
		m := all[moduleOf(name)]
		if m == nil {
			m = &module{map[string]bool{}, map[string]bool{}, map[string]string{}}
			all[moduleOf(name)] = m
		}
		body := parse(name, src)
		if body == nil {
			continue
		}
		for _, b := range body.Blocks {
			if address := addressOf(b); address != "" {
				m.defined[address] = true
			}
			if source := localSource(b); b.Type == "module" && source != "" {
				m.calls[b.Labels[0]] = path.Join(moduleOf(name), source)
			}
			if b.Type == "locals" {
				for local := range b.Body.Attributes {
					m.defined["local."+local] = true
				}
			}
		}
		for _, b := range body.Blocks {
			if path.Ext(name) == ".tf" { // what only tests use goes
				m.uses(b)
			}
		}
	}
	return all
}

// uses records what a block refers to other than itself, as a variable does in its
// validation.
func (m *module) uses(b *hclsyntax.Block) {
	_ = hclsyntax.VisitAll(b, func(n hclsyntax.Node) hcl.Diagnostics {
		if e, ok := n.(*hclsyntax.ScopeTraversalExpr); ok && addressIn(e.Traversal) != addressOf(b) {
			m.used[addressIn(e.Traversal)] = true
		}
		return nil
	})
}

func parse(name string, src []byte) *hclsyntax.Body {
	file, problems := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if problems.HasErrors() {
		return nil
	}
	return file.Body.(*hclsyntax.Body)
}

// gone returns the addresses that a file may not refer to, or define, any more.
func gone(before, after map[string]*module, name string) map[string]bool {
	all := map[string]bool{}
	folder := moduleOf(name)
	missing := func(folder, prefix, as string) {
		was, is := before[folder], after[folder]
		for address := range was.defined {
			unused := was.used[address] && is != nil && !is.used[address] &&
				(strings.HasPrefix(address, "local.") || strings.HasPrefix(address, "var."))
			if rest, ok := strings.CutPrefix(address, prefix); ok && (is == nil || !is.defined[address] || unused) {
				all[as+rest] = true
			}
		}
	}
	missing(folder, "", "")
	for call, source := range before[folder].calls {
		if before[source] != nil {
			missing(source, "var.", "module."+call+".arg.")
			missing(source, "output.", "module."+call+".")
		}
	}
	return all
}

func localSource(b *hclsyntax.Block) string {
	if a := b.Body.Attributes["source"]; a != nil {
		if v, problems := a.Expr.Value(nil); !problems.HasErrors() && strings.HasPrefix(v.AsString(), ".") {
			return v.AsString()
		}
	}
	return ""
}

// addressOf returns the address that a block defines, or "".
func addressOf(b *hclsyntax.Block) string {
	prefix := map[string]string{
		"variable": "var.", "output": "output.", "module": "module.", "run": "run.",
		"resource": "", "data": "data.",
	}
	if p, ok := prefix[b.Type]; ok && len(b.Labels) > 0 {
		return p + strings.Join(b.Labels, ".")
	}
	return ""
}

// addressIn returns what a reference refers to, in the form of addressOf.
func addressIn(t hcl.Traversal) string {
	names := []string{t.RootName()}
	for _, step := range t[1:] {
		if attr, ok := step.(hcl.TraverseAttr); ok && len(names) < 3 {
			names = append(names, attr.Name)
		} else {
			break
		}
	}
	want := 2
	if names[0] == "data" || names[0] == "module" && len(names) == 3 {
		want = 3
	}
	if len(names) < want {
		return ""
	}
	return strings.Join(names[:want], ".")
}

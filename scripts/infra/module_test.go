package infra_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// body is a parsed block of infra/terraform. Its expressions can use literals and the
// defaults of variables.
type body struct {
	*hclsyntax.Body
	defaults *hcl.EvalContext
}

// parse returns the blocks of all files of the module.
func parse(t *testing.T) body {
	t.Helper()
	names, err := filepath.Glob("terraform/*.tf")
	if err != nil || len(names) == 0 {
		t.Fatalf("infra/terraform: got %d files: %v", len(names), err)
	}
	all := body{&hclsyntax.Body{}, &hcl.EvalContext{}}
	for _, name := range names {
		file, problems := hclparse.NewParser().ParseHCLFile(name)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		all.Blocks = append(all.Blocks, file.Body.(*hclsyntax.Body).Blocks...)
	}
	defaults := map[string]cty.Value{}
	for _, variable := range all.blocks("variable") {
		if variable.Attributes["default"] != nil {
			defaults[variable.labels[0]] = variable.value(t, "default")
		}
	}
	all.defaults.Variables = map[string]cty.Value{"var": cty.ObjectVal(defaults)}
	return all
}

type block struct {
	body
	labels []string
}

func (b body) blocks(kind string) (all []block) {
	for _, inner := range b.Blocks {
		if inner.Type == kind {
			all = append(all, block{body{inner.Body, b.defaults}, inner.Labels})
		}
	}
	return all
}

// one returns the only block of this kind with these labels.
func (b body) one(t *testing.T, kind string, labels ...string) body {
	t.Helper()
	var found []block
	for _, candidate := range b.blocks(kind) {
		if slices.Equal(candidate.labels, labels) {
			found = append(found, candidate)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s %q: got %d blocks, want one", kind, labels, len(found))
	}
	return found[0].body
}

func (b body) attribute(t *testing.T, name string) *hclsyntax.Attribute {
	t.Helper()
	if b.Attributes[name] == nil {
		t.Fatalf("%s: no such attribute", name)
	}
	return b.Attributes[name]
}

func (b body) value(t *testing.T, name string) cty.Value {
	t.Helper()
	v, problems := b.attribute(t, name).Expr.Value(b.defaults)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return v
}

func (b body) text(t *testing.T, name string) string {
	t.Helper()
	return b.value(t, name).AsString()
}

func (b body) number(t *testing.T, name string) int {
	t.Helper()
	return integer(b.value(t, name))
}

func (b body) seconds(t *testing.T, name string) time.Duration {
	t.Helper()
	return time.Duration(b.number(t, name)) * time.Second
}

func integer(v cty.Value) int {
	n, _ := v.AsBigFloat().Int64()
	return int(n)
}

// fields calls visit for every field of every object inside a node, including arguments
// of calls such as jsonencode.
func fields(node hclsyntax.Node, visit func(name string, value hclsyntax.Expression)) {
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		if object, ok := n.(*hclsyntax.ObjectConsExpr); ok {
			for _, item := range object.Items {
				visit(hcl.ExprAsKeyword(item.KeyExpr), item.ValueExpr)
			}
		}
		return nil
	})
}

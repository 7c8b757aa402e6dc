package infra_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// body is a parsed block of infra/terraform. Its expressions are evaluated in a module.
type body struct {
	*hclsyntax.Body
	in *module
}

type block struct {
	body
	labels []string
}

// module is infra/terraform with every part on and otherwise the defaults of its
// variables. An attribute of a resource has its address as its value, such as
// "aws_sqs_queue.queues.orders.arn".
type module struct {
	body
	locals map[string]hclsyntax.Expression
	values map[string]cty.Value // of variables, locals and resources, by address
}

// parse returns the module.
func parse(t *testing.T) *module {
	t.Helper()
	names, err := filepath.Glob("terraform/*.tf")
	if err != nil || len(names) == 0 {
		t.Fatalf("infra/terraform: got %d files: %v", len(names), err)
	}
	m := &module{locals: map[string]hclsyntax.Expression{}, values: map[string]cty.Value{}}
	m.body = body{&hclsyntax.Body{}, m}
	for _, name := range names {
		file, problems := hclparse.NewParser().ParseHCLFile(name)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		m.Blocks = append(m.Blocks, file.Body.(*hclsyntax.Body).Blocks...)
	}
	for _, locals := range m.blocks("locals") {
		for name, attribute := range locals.Attributes {
			m.locals[name] = attribute.Expr
		}
	}
	for _, variable := range m.blocks("variable") {
		value := cty.NilVal
		if variable.Attributes["default"] != nil {
			value = variable.value(t, "default")
			if value.Type() == cty.Bool && value.False() && variable.labels[0] != "fifo" {
				value = cty.True
			}
		}
		m.values["var."+variable.labels[0]] = value
	}
	maps.Copy(m.values, map[string]cty.Value{
		"local.scope": cty.StringVal("scope"), "var.stripe_read_key_version": cty.NumberIntVal(1),
		"var.receipt_from":              cty.StringVal("receipts@shop.invalid"),
		"var.receipt_configuration_set": cty.StringVal("set"),
		"var.kms_key_arn":               cty.StringVal("key"),
		"var.intake_jwt": cty.ObjectVal(map[string]cty.Value{
			"owner_claim": cty.StringVal("owner"), "customer_claim": cty.StringVal("payer"),
		}),
	})
	return m
}

// local returns a local value.
func (m *module) local(t *testing.T, name string) cty.Value {
	t.Helper()
	if _, ok := m.values["local."+name]; !ok {
		if m.locals[name] == nil {
			t.Fatalf("local.%s: not in infra/terraform", name)
		}
		m.values["local."+name] = m.evaluate(t, m.locals[name])
	}
	return m.values["local."+name]
}

// evaluate returns the value of an expression, after those that it refers to.
func (m *module) evaluate(t *testing.T, e hclsyntax.Expression) cty.Value {
	t.Helper()
	scope := &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: functions()}
	roots := map[string]map[string]cty.Value{}
	for _, traversal := range e.Variables() {
		root, name := traversal.RootName(), ""
		if attribute, ok := traversal[min(1, len(traversal)-1)].(hcl.TraverseAttr); ok {
			name = attribute.Name
		}
		if roots[root] == nil {
			roots[root] = map[string]cty.Value{}
		}
		switch root {
		case "var":
			roots[root][name] = m.values["var."+name]
		case "local":
			roots[root][name] = m.local(t, name)
		case "data":
			roots[root] = facts()
		default:
			roots[root][name] = m.resource(t, root, name)
		}
	}
	for root, values := range roots {
		scope.Variables[root] = cty.ObjectVal(values)
	}
	value, problems := e.Value(scope)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return value
}

// facts are what the data sources return.
func facts() map[string]cty.Value {
	one := func(name string, values map[string]cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{name: cty.ObjectVal(values)})
	}
	text := cty.StringVal
	return map[string]cty.Value{
		"aws_caller_identity": one("current", map[string]cty.Value{"account_id": text("123456789012")}),
		"aws_partition":       one("current", map[string]cty.Value{"partition": text("aws"), "dns_suffix": text("amazonaws.com")}),
		"aws_region":          one("current", map[string]cty.Value{"region": text("eu-west-1")}),
	}
}

// resource returns the attributes of a resource, of each instance if it has several.
func (m *module) resource(t *testing.T, kind, name string) cty.Value {
	t.Helper()
	address := kind + "." + name
	if _, ok := m.values[address]; ok {
		return m.values[address]
	}
	attributes := func(address string) cty.Value {
		values := map[string]cty.Value{}
		for _, name := range []string{
			"arn", "id", "name", "url", "uuid", "stream_arn", "message_retention_seconds",
			"secret_string_wo_version",
		} {
			values[name] = cty.StringVal(address + "." + name)
		}
		return cty.ObjectVal(values)
	}
	block := m.one(t, "resource", kind, name)
	switch {
	case block.Attributes["count"] != nil:
		m.values[address] = cty.TupleVal([]cty.Value{attributes(address)})
	case block.Attributes["for_each"] != nil:
		instances := map[string]cty.Value{}
		for key := range block.value(t, "for_each").AsValueMap() {
			instances[key] = attributes(address + "." + key)
		}
		m.values[address] = cty.ObjectVal(instances)
	default:
		m.values[address] = attributes(address)
	}
	return m.values[address]
}

// functions are those of Terraform that the local values call.
func functions() map[string]function.Function {
	return map[string]function.Function{
		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc, "ceil": stdlib.CeilFunc, "coalesce": stdlib.CoalesceFunc,
		"concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "format": stdlib.FormatFunc,
		"join": stdlib.JoinFunc, "jsonencode": stdlib.JSONEncodeFunc, "keys": stdlib.KeysFunc,
		"length": stdlib.LengthFunc, "lookup": stdlib.LookupFunc, "max": stdlib.MaxFunc, "merge": stdlib.MergeFunc,
		"regex": stdlib.RegexFunc, "replace": stdlib.ReplaceFunc, "setunion": stdlib.SetUnionFunc,
		"sort": stdlib.SortFunc, "split": stdlib.SplitFunc, "title": stdlib.TitleFunc, "values": stdlib.ValuesFunc,
		"tostring": stdlib.MakeToFunc(cty.String),
		"one": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
			Type: func(args []cty.Value) (cty.Type, error) {
				if args[0].LengthInt() != 1 {
					return cty.DynamicPseudoType, fmt.Errorf("one: got %d elements", args[0].LengthInt())
				}
				return args[0].AsValueSlice()[0].Type(), nil
			},
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0].AsValueSlice()[0], nil },
		}),
	}
}

func (b body) blocks(kind string) (all []block) {
	for _, inner := range b.Blocks {
		if inner.Type == kind {
			all = append(all, block{body{inner.Body, b.in}, inner.Labels})
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

func (b body) value(t *testing.T, name string) cty.Value {
	t.Helper()
	if b.Attributes[name] == nil {
		t.Fatalf("%s: no such attribute", name)
	}
	return b.in.evaluate(t, b.Attributes[name].Expr)
}

func (b body) text(t *testing.T, name string) string {
	t.Helper()
	return b.value(t, name).AsString()
}

func (b body) seconds(t *testing.T, name string) time.Duration {
	t.Helper()
	return time.Duration(number(b.value(t, name))) * time.Second
}

// dependencies returns the addresses of the resources that a block must follow.
func (b body) dependencies() (addresses []string) {
	if b.Attributes["depends_on"] != nil {
		for _, traversal := range b.Attributes["depends_on"].Expr.Variables() {
			addresses = append(addresses, traversal.RootName()+"."+traversal[1].(hcl.TraverseAttr).Name)
		}
	}
	return addresses
}

func number(v cty.Value) float64 {
	n, _ := v.AsBigFloat().Float64()
	return n
}

// texts returns the text, or each text of a list or of the values of an object.
func texts(v cty.Value) (all []string) {
	if v.Type() == cty.String {
		return []string{v.AsString()}
	}
	for _, element := range v.Elements() {
		all = append(all, texts(element)...)
	}
	return all
}

// statements returns those of the role of each function and of the two policies of
// operators, by Sid.
func (m *module) statements(t *testing.T) map[string]map[string]cty.Value {
	t.Helper()
	all := map[string]map[string]cty.Value{
		"operator-read":   m.local(t, "operator_reads").AsValueMap(),
		"operator-repair": m.local(t, "operator_repairs").AsValueMap(),
	}
	for name, role := range m.local(t, "statements").AsValueMap() {
		all[name] = role.AsValueMap()
	}
	return all
}

// actions returns what statements allow, without what they allow on KMS keys.
func actions(statements map[string]cty.Value) (all []string) {
	for _, statement := range statements {
		all = append(all, texts(statement.GetAttr("Action"))...)
	}
	return set(slices.DeleteFunc(all, func(a string) bool { return strings.HasPrefix(a, "kms:") }))
}

// set sorts texts and removes duplicates.
func set(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

package infra_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// body is a parsed block of infra/terraform.
type body struct{ *hclsyntax.Body }

type block struct {
	body
	labels []string
}

// parse returns the module.
func parse(t *testing.T) body {
	t.Helper()
	names, err := filepath.Glob("terraform/*.tf")
	if err != nil || len(names) == 0 {
		t.Fatalf("infra/terraform: got %d files: %v", len(names), err)
	}
	module := body{&hclsyntax.Body{}}
	for _, name := range names {
		file, problems := hclparse.NewParser().ParseHCLFile(name)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		module.Blocks = append(module.Blocks, file.Body.(*hclsyntax.Body).Blocks...)
	}
	return module
}

func (b body) blocks(kind string) (all []block) {
	for _, inner := range b.Blocks {
		if inner.Type == kind {
			all = append(all, block{body{inner.Body}, inner.Labels})
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

// value returns the value of an attribute that is constant.
func (b body) value(t *testing.T, name string) cty.Value {
	t.Helper()
	if b.Attributes[name] == nil {
		t.Fatalf("%s: no such attribute", name)
	}
	value, problems := b.Attributes[name].Expr.Value(nil)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return value
}

func (b body) text(t *testing.T, name string) string {
	t.Helper()
	return b.value(t, name).AsString()
}

func (b body) seconds(t *testing.T, name string) time.Duration {
	t.Helper()
	n, _ := b.value(t, name).AsBigFloat().Float64()
	return time.Duration(n) * time.Second
}

// references returns the addresses that an attribute refers to.
func (b body) references(name string) (addresses []string) {
	if b.Attributes[name] != nil {
		for _, traversal := range b.Attributes[name].Expr.Variables() {
			if attribute, named := traversal[min(1, len(traversal)-1)].(hcl.TraverseAttr); named {
				addresses = append(addresses, traversal.RootName()+"."+attribute.Name)
			}
		}
	}
	return addresses
}

// statement is a statement of a policy.
type statement struct {
	actions   []string
	condition string // JSON, or ""
}

// statements returns those of every policy, by kind and name, such as "role order", and
// by Sid. Terraform's tests compare the list with the plan.
func statements(t *testing.T) map[string]map[string]statement {
	t.Helper()
	line := regexp.MustCompile(`(?m)^(\w+ [\w-]+) (\w+): (?:Allow|Deny) ([\w: ]+?)(?: by \S+)?(?: on .+?)?(?: if (.+))?$`)
	all := map[string]map[string]statement{}
	for _, m := range line.FindAllStringSubmatch(read(t, "terraform/tests/policies.txt"), -1) {
		if all[m[1]] == nil {
			all[m[1]] = map[string]statement{}
		}
		all[m[1]][m[2]] = statement{strings.Fields(m[3]), m[4]}
	}
	return all
}

// actions returns what statements allow, without what they allow on KMS keys.
func actions(statements map[string]statement) (all []string) {
	for _, s := range statements {
		all = append(all, s.actions...)
	}
	return set(slices.DeleteFunc(all, func(a string) bool { return strings.HasPrefix(a, "kms:") }))
}

// set sorts texts and removes duplicates.
func set(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

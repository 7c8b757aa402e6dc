package infra_test

import (
	"go/ast"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"orderonce/adapters/lambda/lambdatest"
)

// policies are the IAM actions that a person who reads has, and one who repairs.
type policies struct{ Read, Repair []string }

// As with the roles, a call that no policy allows fails only in AWS.
func TestTheOperatorPoliciesAllowWhatTheToolDoes(t *testing.T) {
	t.Parallel()
	changes := []string{ // of rows, queues or events
		"dynamodb:PutItem", "dynamodb:UpdateItem", "events:PutEvents", "sqs:DeleteMessage", "sqs:SendMessage",
	}
	var want policies
	for _, action := range toolActions(t) {
		// `orders smoke` calls it if DEAD_LETTER_QUEUE_URL is not set. operator_environment
		// sets it.
		if action == "sqs:GetQueueUrl" {
			continue
		}
		want.Repair = append(want.Repair, action)
		if !slices.Contains(changes, action) {
			want.Read = append(want.Read, action)
		}
	}
	if diff := cmp.Diff(want, operatorPolicies(t)); diff != "" {
		t.Errorf("actions differ (- scripts/orders, + operator.tf):\n%s", diff)
	}
}

func TestTheOperatorPoliciesAllowWhatTheGuideLists(t *testing.T) {
	t.Parallel()
	listed := listedPermissions(t)
	delete(listed, "smoke") // as above
	var want policies
	for _, actions := range listed {
		want.Repair = append(want.Repair, actions...)
	}
	for _, command := range []string{
		"show", "list", "watch", "dead-letters list", "dead-letters show", "audit",
	} {
		actions, ok := listed[command]
		if !ok {
			t.Errorf("operate.md: no permissions of %q", command)
		}
		want.Read = append(want.Read, actions...)
	}
	want.Read, want.Repair = set(want.Read), set(want.Repair)
	if diff := cmp.Diff(want, operatorPolicies(t)); diff != "" {
		t.Errorf("actions differ (- docs/guides/operate.md, + operator.tf):\n%s", diff)
	}
}

// listedPermissions returns the IAM actions that the guide lists for each command. A row
// that says "the same" has none.
func listedPermissions(t *testing.T) map[string][]string {
	t.Helper()
	_, section, ok := strings.Cut(read(t, "../docs/guides/operate.md"), "\n## Permissions\n")
	if !ok {
		t.Fatal("operate.md: no section of the permissions")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(.+?)` \\| (.*?) \\|")
	for _, match := range row.FindAllStringSubmatch(section, -1) {
		for command := range strings.SplitSeq(match[1], "`, `") {
			listed[command] = regexp.MustCompile(`[a-z]+:[A-Z]\w+`).FindAllString(match[2], -1)
		}
	}
	return listed
}

// operatorPolicies returns the actions of operator.tf, without those on KMS keys.
func operatorPolicies(t *testing.T) (p policies) {
	t.Helper()
	for _, locals := range parse(t).blocks("locals") {
		if locals.Attributes["operator_reads"] == nil {
			continue
		}
		p.Read = actionsOf(locals.attribute(t, "operator_reads").Expr)
		p.Repair = append(actionsOf(locals.attribute(t, "operator_repairs").Expr), p.Read...)
	}
	p.Read, p.Repair = set(p.Read), set(p.Repair)
	return p
}

func actionsOf(statements hclsyntax.Expression) (actions []string) {
	fields(statements, func(name string, value hclsyntax.Expression) {
		if name == "Action" {
			actions = append(actions, texts(value)...)
		}
	})
	return slices.DeleteFunc(actions, func(a string) bool { return strings.HasPrefix(a, "kms:") })
}

// set sorts texts and removes duplicates.
func set(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// toolActions returns the IAM actions of the calls that scripts/orders and the packages
// that it imports make.
func toolActions(t *testing.T) (actions []string) {
	t.Helper()
	seen := map[string]bool{}
	for left := []string{"scripts/orders"}; len(left) > 0; left = left[1:] {
		if seen[left[0]] {
			continue
		}
		seen[left[0]] = true
		files, err := filepath.Glob("../" + left[0] + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %d files: %v", left[0], len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file := parseGo(t, name)
			left, actions = append(left, file.packages()...), append(actions, file.actions()...)
		}
	}
	return set(actions)
}

// imports returns the paths of imported packages by the names that the file uses.
func (f goFile) imports() map[string]string {
	all := map[string]string{}
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		all[name] = imported
	}
	return all
}

// packages returns the directories of this module that the file imports.
func (f goFile) packages() (directories []string) {
	for _, imported := range f.imports() {
		if directory, ok := strings.CutPrefix(imported, lambdatest.Module()+"/"); ok {
			directories = append(directories, directory)
		}
	}
	return directories
}

// actions returns the IAM actions of the SDK's operations that the file calls. The input
// of each operation has a type of its own, such as sqs.SendMessageInput.
func (f goFile) actions() (actions []string) {
	imports := f.imports()
	ast.Inspect(f.File, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		service, ofSDK := strings.CutPrefix(imports[from.Name], "github.com/aws/aws-sdk-go-v2/service/")
		operation, isInput := strings.CutSuffix(selector.Sel.Name, "Input")
		if ofSDK && isInput {
			actions = append(actions, permissions(service, operation)...)
		}
		return true
	})
	return actions
}

// permissions returns the IAM actions that an operation of the SDK needs.
func permissions(service, operation string) []string {
	switch {
	case operation == "TransactWriteItems": // of an update and a put
		return []string{"dynamodb:UpdateItem", "dynamodb:PutItem"}
	case service == "sqs":
		return []string{"sqs:" + strings.TrimSuffix(operation, "Batch")}
	case service == "eventbridge":
		return []string{"events:" + operation}
	}
	return []string{service + ":" + operation}
}

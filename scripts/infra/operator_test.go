package infra_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
)

// policies are the IAM actions that a person who reads has, and one who repairs.
type policies struct{ Read, Repair []string }

// As with the roles, a call that no policy allows fails only in AWS.
func TestTheOperatorPoliciesAllowWhatTheToolDoesAndTheGuideLists(t *testing.T) {
	changes := []string{ // of rows, queues or events
		"dynamodb:PutItem", "dynamodb:UpdateItem", "events:PutEvents", "sqs:DeleteMessage", "sqs:SendMessage",
	}
	tool := policies{Repair: toolActions(t)}
	tool.Read = slices.DeleteFunc(slices.Clone(tool.Repair), func(a string) bool { return slices.Contains(changes, a) })
	listed := listedPermissions(t)
	var guide policies
	for command, actions := range listed {
		guide.Repair = append(guide.Repair, actions...)
		if slices.Contains([]string{"show", "list", "watch", "dead-letters list", "dead-letters show", "audit"}, command) {
			guide.Read = append(guide.Read, actions...)
		}
	}
	all := statements(t)
	got := policies{Read: actions(all["operator read"]), Repair: actions(all["operator repair"])}
	for name, want := range map[string]policies{
		"scripts/orders": tool, "docs/guides/operate.md": {set(guide.Read), set(guide.Repair)},
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("actions differ (- %s, + operator.tf):\n%s", name, diff)
		}
	}
}

// listedPermissions returns the IAM actions that the guide lists for each command. A row
// that says "the same" has none.
func listedPermissions(t *testing.T) map[string][]string {
	t.Helper()
	rows := section(t, "../docs/guides/operate.md", "\n## Permissions of an operator\n", "\n## ")
	listed := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(.+?)` \\| (.*?) \\|")
	for _, match := range row.FindAllStringSubmatch(rows, -1) {
		for command := range strings.SplitSeq(match[1], "`, `") {
			listed[command] = regexp.MustCompile(`[a-z]+:[A-Z]\w+`).FindAllString(match[2], -1)
		}
	}
	return listed
}

// toolActions returns the IAM actions of the calls that scripts/orders and the packages
// that it imports make.
func toolActions(t *testing.T) (all []string) {
	t.Helper()
	seen := map[string]bool{}
	for left := []string{"scripts/orders"}; len(left) > 0; left = left[1:] {
		if seen[left[0]] {
			continue
		}
		seen[left[0]] = true
		files, err := filepath.Glob(folder + "../" + left[0] + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %d files: %v", left[0], len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text := content(t, name)
			for _, match := range regexp.MustCompile(`\n(?:\t|import )(?:(\w+) )?"([^"]+)"`).FindAllStringSubmatch(text, -1) {
				if directory, ok := strings.CutPrefix(match[2], lambdatest.Module()+"/"); ok {
					left = append(left, directory)
				}
				if service, ok := strings.CutPrefix(match[2], "github.com/aws/aws-sdk-go-v2/service/"); ok {
					// The input of each operation has a type of its own: sqs.SendMessageInput.
					name := service
					if match[1] != "" {
						name = match[1]
					}
					input := regexp.MustCompile(`\b` + name + `\.(\w+)Input\b`)
					for _, operation := range input.FindAllStringSubmatch(text, -1) {
						all = append(all, permissions(service, operation[1])...)
					}
				}
			}
		}
	}
	return set(all)
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
